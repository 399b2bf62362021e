import type { SecretAccess } from '@weir/model';
import {
  type ConfigMistake,
  list,
  oneOf,
  optional,
  type Secret,
  type Setting,
  type SettingFormat,
  setting,
} from '@weir/runtime';
import { FLEET_SECRET_FORMAT } from '@weir/store';
import { DNS_LABEL } from '../parse/fields.ts';

const NAMESPACE_FORMAT: SettingFormat<string> = {
  allowed: DNS_LABEL.allowed,
  parse: (raw) => (DNS_LABEL.matches(raw) ? raw : undefined),
};

interface SecretSettings {
  readonly secretAccess: SecretAccess['kind'];
  readonly secretNamespaces: readonly string[];
  readonly fleetSecret: Secret | undefined;
}

/** The settings for TLS Secrets: which Secrets the controller reads, and the fleet secret that seals their private keys. */
export const SECRET_SETTINGS: { readonly [Name in keyof SecretSettings]: Setting<SecretSettings[Name]> } = {
  secretAccess: oneOf('WEIR_SECRET_ACCESS', ['none', 'namespaces', 'cluster'], { default: 'none' }),
  secretNamespaces: list('WEIR_SECRET_NAMESPACES', NAMESPACE_FORMAT, { default: [] }),
  fleetSecret: optional(setting('WEIR_FLEET_SECRET', FLEET_SECRET_FORMAT)),
};

/**
 * Checks the settings against each other. Returns a mistake for each setting that `secretAccess` requires but is missing, and for
 * each setting that `secretAccess` does not allow.
 */
export function validateSecretSettings({
  secretAccess,
  secretNamespaces,
  fleetSecret,
}: SecretSettings): readonly ConfigMistake[] {
  const mistakes: ConfigMistake[] = [];
  const requiredBy = `required with WEIR_SECRET_ACCESS=${secretAccess}`;
  const variable = 'WEIR_SECRET_NAMESPACES';
  if (secretAccess === 'namespaces' && secretNamespaces.length === 0) {
    mistakes.push({
      variable,
      redactedValue: undefined,
      allowed: `a list of the namespaces whose Secrets the controller may read; ${requiredBy}`,
    });
  } else if (secretAccess !== 'namespaces' && secretNamespaces.length > 0) {
    const redactedValue = JSON.stringify(secretNamespaces.join(','));
    mistakes.push({
      variable,
      redactedValue,
      allowed: `this setting only with WEIR_SECRET_ACCESS=namespaces (WEIR_SECRET_ACCESS is ${secretAccess})`,
    });
  }
  if (secretAccess !== 'none' && fleetSecret === undefined) {
    const allowed = `${FLEET_SECRET_FORMAT.allowed}; ${requiredBy}`;
    mistakes.push({ variable: 'WEIR_FLEET_SECRET', redactedValue: undefined, allowed });
  }
  return mistakes;
}

export function secretAccessFor({ secretAccess, secretNamespaces }: Omit<SecretSettings, 'fleetSecret'>): SecretAccess {
  return secretAccess === 'namespaces'
    ? { kind: secretAccess, namespaces: [...new Set(secretNamespaces)] }
    : { kind: secretAccess };
}
