import DefaultTheme from 'vitepress/theme'
import { h } from 'vue'
import SecretPath from './SecretPath.vue'
import VersionMenu from './VersionMenu.vue'
import './style.css'

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'home-hero-after': () => h(SecretPath) }),
  enhanceApp: ({ app }) => app.component('VersionMenu', VersionMenu),
}
