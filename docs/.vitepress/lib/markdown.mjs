// What pages have that VitePress does not know: links to files of the repository, anchors as GitHub makes them, diagrams, and
// code by indentation.
import { existsSync, statSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { renderMermaidSVG } from 'beautiful-mermaid'
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

/** A plugin of markdown-it that draws blocks of Mermaid while the site is built. It comes after those that wrap fences. */
export function diagrams(md) {
  const { fence } = md.renderer.rules
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const { info, content } = tokens[index]
    if (info.trim() !== 'mermaid') return fence(tokens, index, ...rest)
    // Vue leaves out styles that are elements of a page.
    return `<div class="diagram" v-html="${md.utils.escapeHtml(JSON.stringify(draw(content)))}"></div>\n`
  }
}

const colours = {
  bg: 'var(--vp-c-bg)',
  fg: 'var(--vp-c-text-1)',
  line: 'var(--vp-c-text-3)',
  accent: 'var(--vp-c-brand-1)',
  muted: 'var(--vp-c-text-2)',
  surface: 'var(--vp-c-bg-soft)',
  border: 'var(--vp-c-divider)',
  transparent: true,
}

/** Returns the SVG of a diagram, in the colours of the theme. One from left to right that is wider than a page goes from top to bottom. */
function draw(diagram) {
  const svg = renderMermaidSVG(subgraphsFirst(diagram), colours)
  const width = Number(/width="([\d.]+)"/.exec(svg)[1])
  const across = /^\s*flowchart LR\b/
  if (width > 1200 && across.test(diagram)) return draw(diagram.replace(across, 'flowchart TD'))
  // The font is that of the site. On a phone a wide diagram is scrolled rather than too small to read.
  return svg.replace(/@import url\([^)]*\);/, '').replace('style="', `style="min-width:${Math.round(width * 0.6)}px;`)
}

/**
 * Moves what stands above the first subgraph to the end: the renderer takes the label of a node, and the subgraph that it is in,
 * from where it is named first.
 */
function subgraphsFirst(diagram) {
  const [direction, ...lines] = diagram.trimEnd().split('\n')
  const first = Math.max(lines.findIndex((line) => /^\s*subgraph\b/.test(line)), 0)
  return [direction, ...lines.slice(first), ...lines.slice(0, first)].join('\n')
}
