// The sidebar has every page: those of a folder are a section. The title of a page is its first heading.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'

/**
 * The sections in their order. `first` lists the pages of a folder that have a place; the others follow by title. A
 * folder in a folder is a group.
 */
const sections = [
  { text: 'Start', dir: 'start', first: ['why', 'concepts', 'install', 'first-secret'] },
  { text: 'Providers', dir: 'providers', last: ['cluster-stores'] },
  { text: 'Generators', dir: 'generators', first: ['index'] },
  { text: 'Events', dir: 'events' },
  {
    text: 'Guides',
    dir: 'guides',
    first: ['shape-a-secret', 'templates', 'certificates-and-registries', 'rotation', 'rotation-in-seconds', 'source-of-truth', 'push-and-failover', 'gitops', 'multi-tenancy', 'moving-from-eso', 'moving-from-a-reloader'],
  },
  {
    text: 'Operate',
    dir: 'operate',
    first: ['operator', 'sizing', 'runbook', 'disaster', 'upgrade', 'uninstall', 'modules', 'several-releases', 'static-manifests'],
  },
  {
    text: 'Reference',
    dir: 'reference',
    first: [
      'external-secret', 'reading', 'templates', 'lifecycle', 'conflicts', 'push-secret', 'push-ownership', 'cluster-external-secret', 'conditions',
      'limits', 'dsctl', 'chart-values', 'chart-values-of-others', 'flags', 'versions', 'threat-model',
    ],
    groups: { api: { text: 'Fields of all Kinds', first: ['index', 'externalsecret', 'clusterexternalsecret', 'pushsecret', 'clusterpushsecret'] } },
  },
  { text: 'Project', dir: 'project', first: ['roadmap', 'v1beta1', 'changelog', 'architecture', 'writing-a-provider', 'good-first-issues', 'governance'] },
]

/** Returns the sidebar of the pages in the folder `docs`, and fails where a page would not be in it. */
export function sidebar(docs) {
  const unknown = readdirSync(docs).filter(
    (name) => !name.startsWith('.') && !['node_modules', 'public'].includes(name) &&
      statSync(join(docs, name)).isDirectory() && !sections.some(({ dir }) => dir === name),
  )
  if (unknown.length > 0) {
    throw new Error(`docs/${unknown[0]} is no section: name it in docs/.vitepress/lib/sidebar.mjs`)
  }
  const alone = pages(docs, '', {}).filter(({ link }) => link !== '/')
  const assistants = { text: 'For AI assistants', link: '/llms.txt', target: '_self' }
  return [...sections.map((section) => group(docs, section.dir, section)), ...alone, assistants]
}

function group(docs, dir, { text, first = [], last = [], groups = {} }) {
  const inner = readdirSync(join(docs, dir)).filter((name) => statSync(join(docs, dir, name)).isDirectory())
  return {
    text,
    collapsed: false,
    items: [
      ...pages(docs, dir, { first, last }),
      ...inner.sort().map((name) => ({ ...group(docs, `${dir}/${name}`, { text: name, ...groups[name] }), collapsed: true })),
    ],
  }
}

function pages(docs, dir, { first = [], last = [] }) {
  for (const name of [...first, ...last]) {
    if (!existsSync(join(docs, dir, `${name}.md`))) throw new Error(`docs/${dir}/${name}.md has a place in docs/.vitepress/lib/sidebar.mjs, and does not exist`)
  }
  const place = (name) => (first.includes(name) ? first.indexOf(name) : last.includes(name) ? 1000 + last.indexOf(name) : 500)
  return readdirSync(join(docs, dir))
    .filter((file) => file.endsWith('.md'))
    .map((file) => basename(file, '.md'))
    .map((name) => ({ name, text: short(title(join(docs, dir, `${name}.md`))), link: `/${dir ? `${dir}/` : ''}${name === 'index' ? '' : name}` }))
    .sort((a, b) => place(a.name) - place(b.name) || a.text.localeCompare(b.text, 'en'))
    .map(({ text, link }) => ({ text, link }))
}

/** Returns the first heading of a page, without marks of Markdown. */
export function title(file) {
  const heading = /^# (.+)$/m.exec(readFileSync(file, 'utf8'))
  return heading ? heading[1].replace(/\[([^\]]+)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '').trim() : basename(file, '.md')
}

/** Returns the sentences of the first paragraph of a page, without marks of Markdown; at most 240 characters. */
export function description(text) {
  const [, body] = /^# .+\n\n([\s\S]*)/m.exec(text) ?? []
  const [lead = ''] = (body ?? '').split(/\n(?:\n|#)/).filter((block) => /^[\w`\[*]/.test(block))
  const plain = lead.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1').replace(/[`*\\]/g, '').replace(/\s+/g, ' ').trim()
  const short = plain.length <= 240 ? plain : (/^.{40,240}[.:](?= )/.exec(plain) ?? [plain.slice(0, 240)])[0]
  return short.replace(/:$/, '.')
}

/** A page on a Kind is named after that and its cluster twin; that of a store first after its product, which is enough here. */
function short(title) {
  return title.replace(/: \w+ and Cluster\w+$/, '').replace(/ and Cluster\w+$/, '')
}
