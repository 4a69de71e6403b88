// Draws blocks of Mermaid while the site is built.
import { renderMermaidSVG } from 'beautiful-mermaid'

/** A plugin of markdown-it. It comes after those that wrap fences. */
export function diagrams(md) {
  const { fence } = md.renderer.rules
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const { info, content } = tokens[index]
    if (info.trim() !== 'mermaid') return fence(tokens, index, ...rest)
    // Vue leaves out styles that are elements of a page.
    return `<div class="diagram" v-html="${md.utils.escapeHtml(JSON.stringify(draw(content)))}"></div>\n`
  }
}

const options = {
  bg: 'var(--vp-c-bg)',
  fg: 'var(--vp-c-text-1)',
  line: 'var(--vp-c-text-3)',
  accent: 'var(--vp-c-brand-1)',
  muted: 'var(--vp-c-text-2)',
  surface: 'var(--vp-c-bg-soft)',
  border: 'var(--vp-c-divider)',
  transparent: true,
}

// Diagrams from top to bottom are for narrow pages.
const compact = { padding: 8, nodeSpacing: 12, layerSpacing: 24 }

/**
 * Returns the SVG of a diagram, in the colours of the theme. One from left to right that is wider than a page goes from top to
 * bottom. Fails if the SVG lacks a label.
 */
export function draw(diagram) {
  const across = /^\s*flowchart LR\b/
  const svg = renderMermaidSVG(subgraphsFirst(diagram), across.test(diagram) ? options : { ...options, ...compact })
  const width = Number(/width="([\d.]+)"/.exec(svg)[1])
  if (width > 1200 && across.test(diagram)) return draw(diagram.replace(across, 'flowchart TD'))
  const lost = lostLabels(diagram, svg)
  if (lost.length > 0) throw new Error(`a diagram does not show the label ${lost.join(', ')}:\n${diagram}`)
  // The font is that of the site. On a phone, a wide diagram scrolls, because smaller text cannot be read.
  return svg.replace(/@import url\([^)]*\);/, '').replace('style="', `style="min-width:${Math.round(width * 0.82)}px;`)
}

/** Returns the labels of nodes and subgraphs in the source of a diagram that its SVG lacks, each line of a label by itself. */
export function lostLabels(diagram, svg) {
  const shown = new Set([...svg.matchAll(/<(text|tspan)\b[^>]*>([^<]*)<\/\1>/g)].map(([, , text]) => text.trim()))
  const labels = [...diagram.matchAll(/[[({]"([^"]+)"[\])}]/g)].flatMap(([, label]) => label.split(/<br ?\/?>/))
  return labels.filter((label) => !shown.has(escaped(label.trim())))
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/**
 * Moves the subgraphs to the top, and keeps the order of the other lines. The renderer takes the label of a node, and the subgraph
 * that it is in, from the line that names it first.
 */
function subgraphsFirst(diagram) {
  const [direction, ...lines] = diagram.trimEnd().split('\n')
  const subgraphs = []
  const others = []
  let depth = 0
  for (const line of lines) {
    if (/^\s*subgraph\b/.test(line)) depth++
    ;(depth > 0 ? subgraphs : others).push(line)
    if (/^\s*end\s*$/.test(line)) depth--
  }
  return [direction, ...subgraphs, ...others].join('\n')
}
