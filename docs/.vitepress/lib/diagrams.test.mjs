import assert from 'node:assert/strict'
import { test } from 'node:test'
import { draw, lostLabels } from './diagrams.mjs'

test('a node that is defined above a subgraph and used below it keeps its label', () => {
  const svg = draw('flowchart LR\n  remote[("Store<br/>shop/db")]\n  subgraph s["namespace"]\n    a["A"] --> b["B"]\n  end\n  remote --> a\n')
  assert.match(svg, />Store</)
  assert.doesNotMatch(svg, />remote</)
})

test('a node that is defined after its use is an error that names its label', () => {
  assert.throws(() => draw('flowchart TD\n  remote --> a["A"]\n  remote["The store"]\n'), /does not show the label The store/)
})

test('the labels of nodes and subgraphs are compared line by line', () => {
  const diagram = 'subgraph s["one & two"]\n a[("three<br/>four")]\n b["five"]\n'
  assert.deepEqual(lostLabels(diagram, '<text>one &amp; two</text><text><tspan>three</tspan></text>'), ['four', 'five'])
})
