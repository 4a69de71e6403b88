// Where the site is built for. Each version is a folder of its own: /direct-secrets/main/, /direct-secrets/v0.1/.
import { fileURLToPath } from 'node:url'

/** The folder docs. */
export const docs = fileURLToPath(new URL('../..', import.meta.url))

/** The repository on GitHub. */
export const repository = 'https://github.com/direct-secrets/direct-secrets'

/** The path at which the server has the site; it starts and ends with a slash. */
export const base = process.env.DOCS_BASE || '/'

/** The server of the published site. */
export const server = 'https://direct-secrets.github.io'

/** The name of the version in the menu. */
export const version = process.env.DOCS_VERSION || 'main'

/** The branch or tag that links to files outside of docs lead to. */
export const ref = process.env.DOCS_REF || 'main'
