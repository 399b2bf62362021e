import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { Authenticator } from '../access/sign-in.ts';
import { TOKEN_AUDIENCE } from '../access/token-reviews.ts';

type OpenApiOptions = NonNullable<FastifyDynamicSwaggerOptions['openapi']>;

/** The head of the document; routes that want a token name `bearerAuth`. */
export function openApiOptionsFor({ kind }: Pick<Authenticator, 'kind'>): OpenApiOptions {
  const info = { title: 'Weir console', description: 'What a fleet of Weir knows and does', version: 'v1' };
  if (kind === 'none') return { info };
  const description = `A token of the cluster, best one for the audience ${TOKEN_AUDIENCE}; what it shows follows from get tenantusages.weir.dev, what it does from create and delete of suspensions.weir.dev`;
  return { info, components: { securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer', description } } } };
}
