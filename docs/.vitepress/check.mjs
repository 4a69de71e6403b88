// Checks the site that `make docs` has built: every link within it leads to a page and to an anchor of it, the sidebar has
// every page, and each page has a description of its own. Links to pages that do not exist make the build itself fail, as do links to files outside of docs.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join, posix } from 'node:path'
import { base, docs } from './lib/site.mjs'

const dist = join(docs, '.vitepress', 'dist')
const failures = []

// What is built for every page, by its path in the site.
const pages = new Map()
for (const file of readdirSync(dist, { recursive: true }).map((name) => name.replaceAll('\\', '/'))) {
  if (!file.endsWith('.html') || file === '404.html') continue
  const html = readFileSync(join(dist, file), 'utf8')
  const [sidebar = ''] = /<aside class="VPSidebar[\s\S]*?<\/aside>/.exec(html) ?? []
  const [, description = ''] = /<meta name="description" content="([^"]*)"/.exec(html) ?? []
  pages.set(`/${file.replace(/(index)?\.html$/, '')}`, {
    links: values(html, /<a\b[^>]*?\shref="([^"]*)"/g),
    description,
    anchors: new Set(values(html, /\sid="([^"]+)"/g)),
    sidebar: values(sidebar, /<a\b[^>]*?\shref="([^"]*)"/g),
  })
}
if (pages.size < 30) failures.push(`the site has only ${pages.size} pages`)

function values(html, pattern) {
  return [...html.matchAll(pattern)].map(([, value]) => value.replaceAll('&amp;', '&'))
}

// within returns the path and the anchor of a link in the site; undefined where it leads elsewhere.
function within(page, href) {
  if (/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(href)) return undefined
  const [path, anchor = ''] = href.split('#').map(decodeURIComponent)
  if (path === '') return [page, anchor]
  if (!path.startsWith('/')) return [posix.join(posix.dirname(`${page}.`), path), anchor]
  return [path.startsWith(base) ? `/${path.slice(base.length)}` : `outside of ${base}`, anchor]
}

const described = new Map()
for (const [page, { links, sidebar, description }] of pages) {
  if (description.length < 40) failures.push(`${page}: its first paragraph, which is its description, is too short: ${description}`)
  if (described.has(description)) failures.push(`${page}: it has the description of ${described.get(description)}`)
  described.set(description, page)
  for (const href of links) {
    const to = within(page, href)
    if (to === undefined) continue
    const [path, anchor] = to
    const target = pages.get(path)
    if (target === undefined) {
      if (path.endsWith('/') || !existsSync(join(dist, path))) failures.push(`${page}: the link ${href} leads nowhere`)
    } else if (anchor !== '' && !target.anchors.has(anchor)) {
      failures.push(`${page}: the link ${href} leads to no anchor of ${path}`)
    }
  }
  if (page !== '/' && !sidebar.some((href) => within(page, href)?.[0] === page)) {
    failures.push(`${page}: it is not in the sidebar, which docs/.vitepress/lib/sidebar.mjs makes`)
  }
}

if (failures.length > 0) {
  console.error(failures.join('\n'))
  process.exit(1)
}
console.log(`${pages.size} pages: every link leads to a page and an anchor, the sidebar has every page, and each has a description.`)
