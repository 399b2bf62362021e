import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureDirectory, errorMessage, readFileIfPresent, Secret, UsageError, writeFileAtomic } from '@weir/runtime';
import { FLEET_SECRET_FORMAT, type RedisAccess } from '@weir/store';

export interface ResolvedFleetSecret {
  /** Undefined: there is none, and Secrets are not read. */
  readonly secret: Secret | undefined;
  /** What the state directory holds was sealed with another one. */
  readonly cannotOpenState: boolean;
}

export interface FleetSecretOptions {
  /** WEIR_FLEET_SECRET, as it stands there. */
  readonly given?: string | undefined;
  readonly redis?: RedisAccess | undefined;
  readonly state?: string | undefined;
}

/**
 * What private keys are sealed with. This process makes one for itself, and keeps it in the state directory, so that what lies there can
 * be opened after a restart. In a Redis keys lie for others, too, who must have the same one: none when none is given.
 */
export async function resolveFleetSecret({
  given = '',
  redis,
  state,
}: FleetSecretOptions): Promise<ResolvedFleetSecret> {
  if (given.trim() !== '') {
    const secret = FLEET_SECRET_FORMAT.parse(given);
    if (secret === undefined)
      throw new UsageError(`WEIR_FLEET_SECRET is [redacted]; use ${FLEET_SECRET_FORMAT.allowed}`);
    return { secret, cannotOpenState: false };
  }
  if (redis !== undefined) return { secret: undefined, cannotOpenState: false };
  return state === undefined ? { secret: randomSecret(), cannotOpenState: false } : readOrCreateSecret(state);
}

/** For as long as this process lasts. */
export function randomSecret(): Secret {
  return new Secret(randomBytes(32).toString('base64url'));
}

async function readOrCreateSecret(directory: string): Promise<ResolvedFleetSecret> {
  const path = join(directory, 'fleet-secret');
  const kept = await asUsageError(readFileIfPresent(path));
  if (kept === undefined) {
    const secret = randomSecret();
    await asUsageError(ensureDirectory(directory).then(() => writeFileAtomic(path, `${secret.reveal()}\n`)));
    return {
      secret,
      cannotOpenState: (await asUsageError(readdir(directory))).some((name) => name.startsWith('proxy-')),
    };
  }
  const secret = FLEET_SECRET_FORMAT.parse(kept);
  if (secret === undefined)
    throw new UsageError(
      `--state: ${path} is damaged; restore it, or delete it: another is made, and certificates are shown once their Secrets are read`,
    );
  return { secret, cannotOpenState: false };
}

/** Where its state is kept is the choice of whoever starts it. */
async function asUsageError<T>(doing: Promise<T>): Promise<T> {
  try {
    return await doing;
  } catch (error) {
    throw new UsageError(`--state: ${errorMessage(error)}`, { cause: error });
  }
}
