// What pages have that VitePress does not know: links to files of the repository, anchors as GitHub makes them, and code by
// indentation.
import { existsSync, statSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { docs, ref, repository } from './site.mjs'

/** Returns the anchor that GitHub gives to a heading, so that a link works there and here. */
export function slugify(heading) {
  return heading.trim().toLowerCase().replace(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '').replaceAll(' ', '-')
}

/** Returns the URL of a file or folder outside of docs on GitHub; undefined if `href` is a page or has a scheme. */
export function repositoryLink(page, href) {
  if (/^([a-z][a-z0-9+.-]*:|\/|#)/i.test(href)) return undefined
  const [path, fragment] = href.split('#')
  const to = resolve(dirname(page), decodeURI(path))
  const root = resolve(docs, '..')
  const inDocs = !relative(docs, to).startsWith('..')
  if (inDocs && (to.endsWith('.md') || !existsSync(to) || statSync(to).isDirectory())) return undefined
  if (!existsSync(to)) throw new Error(`${relative(root, page)}: the link ${href} leads nowhere`)
  const kind = statSync(to).isDirectory() ? 'tree' : 'blob'
  return `${repository}/${kind}/${ref}/${relative(root, to)}${fragment ? `#${fragment}` : ''}`
}

/** A plugin of markdown-it. */
export function pages(md) {
  md.core.ruler.push('repository_links', (state) => {
    for (const token of state.tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type !== 'link_open') continue
      const url = repositoryLink(state.env.realPath ?? state.env.path, token.attrGet('href'))
      if (url) token.attrSet('href', url)
    }
  })
  // Text is no template of Vue.
  for (const rule of ['text', 'code_inline']) {
    const render = md.renderer.rules[rule]
    md.renderer.rules[rule] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;')
  }
  // Long paths break at their dots where a column of a table is narrow.
  const { code_inline: code } = md.renderer.rules
  md.renderer.rules.code_inline = (tokens, index, ...rest) => {
    const html = code(tokens, index, ...rest)
    return tokens[index].content.length < 24 ? html : html.replace(/(\w[.[\]{}]+)(?=[a-z])/g, '$1<wbr>')
  }
  md.core.ruler.push('indented_code', (state) => {
    for (const token of state.tokens.filter(({ type }) => type === 'code_block')) {
      Object.assign(token, { type: 'fence', tag: 'code', markup: '```', info: '' })
    }
  })
}
