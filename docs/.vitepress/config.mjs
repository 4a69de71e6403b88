import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'
import { diagrams } from './lib/diagrams.mjs'
import { pages, slugify } from './lib/markdown.mjs'
import { description, sidebar } from './lib/sidebar.mjs'
import { base, docs, ref, repository, server, version } from './lib/site.mjs'

export default defineConfig({
  title: 'direct-secrets',
  description: 'Kubernetes Secrets from AWS, Azure, Google, Kubernetes, 1Password, Vault and OpenBao: each provider is an operator with a Kind of its own, and no SecretStore in between.',
  base,
  lang: 'en',
  cleanUrls: true,
  head: [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: `${base}logo.svg` }],
    ['link', { rel: 'alternate', type: 'text/plain', title: 'For AI assistants', href: `${base}llms.txt` }],
  ],
  sitemap: { hostname: server + base },
  markdown: {
    attrs: { disable: true }, // GitHub shows braces as they are.
    anchor: { slugify },
    languageAlias: { promql: 'text' },
    preConfig: pages,
    config: diagrams,
  },
  transformPageData({ relativePath, frontmatter }) {
    const text = readFileSync(join(docs, relativePath), 'utf8')
    const isGenerated = text.startsWith('<!-- Made by `make generate`')
    const hasOutline = /^## /m.test(text) // Without one its column is left to the page.
    const about = frontmatter.layout === 'home' ? frontmatter.hero.tagline : description(text)
    return { description: about, frontmatter: { ...frontmatter, editLink: !isGenerated, aside: hasOutline, pageClass: isGenerated ? 'generated' : '' } }
  },
  vite: { build: { chunkSizeWarningLimit: 1000 } },
  themeConfig: {
    logo: '/logo.svg',
    nav: [
      { text: 'Start', link: '/start/concepts' },
      { text: 'Guides', link: '/guides/shape-a-secret' },
      { text: 'Reference', link: '/reference/external-secret' },
      { text: 'Runbook', link: '/operate/runbook' },
      { text: 'FAQ', link: '/faq' },
      { component: 'VersionMenu' },
    ],
    sidebar: sidebar(docs),
    outline: { level: [2, 3] },
    search: {
      provider: 'local',
      // A page whose title has the term comes before sections of other pages with that heading. Sections of a page have titles above them.
      options: { miniSearch: { searchOptions: { boostDocument: (id, term, { title, titles }) => (!titles?.length && title?.toLowerCase().includes(term) ? 2 : 1) } } },
    },
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path`, text: 'Edit this page on GitHub' },
    externalLinkIcon: true,
    footer: { message: `Licensed under Apache-2.0. <a href="${base}llms.txt">For AI assistants</a>` },
    version: { name: version, ref },
  },
})
