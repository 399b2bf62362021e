import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureDirectory, errorMessage, readFileIfPresent, Secret, UsageError, writeFileAtomic } from '@weir/runtime';
import { FLEET_SECRET_FORMAT, type RedisAccess } from '@weir/store';

export interface ResolvedFleetSecret {
  /** Undefined if no fleet secret is configured. Kubernetes Secrets are then not read. */
  readonly secret: Secret | undefined;
  /** Whether the secret is new, although the state directory may contain private keys that an older secret encrypted. */
  readonly cannotOpenState: boolean;
}

export interface FleetSecretOptions {
  /** The value of WEIR_FLEET_SECRET, not validated yet. */
  readonly given?: string | undefined;
  readonly redis?: RedisAccess | undefined;
  readonly state?: string | undefined;
}

/**
 * Returns the fleet secret, with which private keys are encrypted. Without Redis, creates a missing secret and keeps it in the state
 * directory, so that a restarted process can decrypt the private keys in the state directory. With Redis, never creates a secret, because
 * all processes must have the same secret.
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

export function randomSecret(): Secret {
  return new Secret(randomBytes(32).toString('base64url'));
}

async function readOrCreateSecret(directory: string): Promise<ResolvedFleetSecret> {
  const path = join(directory, 'fleet-secret');
  const content = await asUsageError(readFileIfPresent(path));
  if (content === undefined) {
    const secret = randomSecret();
    await asUsageError(ensureDirectory(directory).then(() => writeFileAtomic(path, `${secret.reveal()}\n`)));
    return {
      secret,
      cannotOpenState: (await asUsageError(readdir(directory))).some((name) => name.startsWith('proxy-')),
    };
  }
  const secret = FLEET_SECRET_FORMAT.parse(content);
  if (secret === undefined)
    throw new UsageError(
      `--state: ${path} is damaged; restore the file, or delete it so that a new secret is created (certificates are then served once their Secrets are read again)`,
    );
  return { secret, cannotOpenState: false };
}

/** Rejects with a `UsageError` if the operation fails, because the user chose the state directory. */
async function asUsageError<T>(operation: Promise<T>): Promise<T> {
  try {
    return await operation;
  } catch (error) {
    throw new UsageError(`--state: ${errorMessage(error)}`, { cause: error });
  }
}
