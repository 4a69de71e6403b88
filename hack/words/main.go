// Command words holds the project's texts to plain words: it prints each phrase of phrases.txt and each
// sentence of more than 35 words in docs, comments, messages, test names and case reasons. Arguments
// limit it to paths that start with one of them; it exits with 1 if it has found anything. It also prints the identifiers
// of Go code that contain a word of identifiers.txt.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// longest is how many words a sentence may have.
const longest = 35

//go:embed phrases.txt
var phraseList string

//go:embed exceptions.txt
var exceptionList string

// A phrase is not plain.
type phrase struct {
	pattern *regexp.Regexp
	instead string
}

// An exception allows the sentences of a file that hold a text.
type exception struct {
	path, text string
	used       bool
}

func main() {
	listed, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot list the files:", err)
		os.Exit(2)
	}
	prefixes := os.Args[1:]
	all := &check{phrases: phrases(phraseList), exceptions: exceptions(exceptionList)}
	names := newIdentifierCheck(identifierList, identifierExceptionList)
	for path := range strings.SplitSeq(strings.TrimRight(string(listed), "\x00"), "\x00") {
		if !chosen(path, prefixes) {
			continue
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue // It is a link, or deleted and not committed yet.
		}
		content, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, "cannot read a file:", err)
			os.Exit(2)
		}
		all.file(path, content)
		names.file(path, content)
	}
	if len(prefixes) == 0 {
		all.unused()
	}
	all.found = append(all.found, names.report(len(prefixes) == 0)...)
	if len(all.found) > 0 {
		fmt.Println(strings.Join(all.found, "\n"))
		fmt.Printf("%d places\n", len(all.found))
		os.Exit(1)
	}
}

// chosen reports whether a path starts with one of the prefixes, or there are none.
func chosen(path string, prefixes []string) bool {
	return len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p string) bool {
		return strings.HasPrefix(path, strings.TrimPrefix(p, "./"))
	})
}

// lines returns the lines of a list that are neither empty nor a comment, split at tabs.
func lines(list string, columns int) [][]string {
	var all [][]string
	for line := range strings.Lines(list) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != columns {
			panic(fmt.Sprintf("%q has %d columns, want %d", line, len(fields), columns))
		}
		all = append(all, fields)
	}
	return all
}

func phrases(list string) []phrase {
	var all []phrase
	for _, f := range lines(list, 2) {
		all = append(all, phrase{pattern: regexp.MustCompile(f[0]), instead: f[1]})
	}
	return all
}

func exceptions(list string) []*exception {
	var all []*exception
	for _, f := range lines(list, 3) {
		all = append(all, &exception{path: f[0], text: f[1]}) // The third column is the reason, for readers.
	}
	return all
}

// check collects what is not plain.
type check struct {
	phrases    []phrase
	exceptions []*exception
	found      []string
}

func (c *check) file(path string, content []byte) {
	if bytes.IndexByte(content, 0) >= 0 {
		return
	}
	for _, t := range texts(path, content) {
		c.text(path, t)
	}
}

func (c *check) text(path string, t text) {
	for _, s := range sentences(t.plain) {
		if c.allowed(path, s.text) {
			continue
		}
		for _, p := range c.phrases {
			for _, at := range p.pattern.FindAllStringIndex(s.text, -1) {
				line := t.line + s.line + strings.Count(s.text[:at[0]], "\n")
				c.found = append(c.found, fmt.Sprintf("%s:%d: %q: %s", path, line, oneLine(s.text[at[0]:at[1]]), p.instead))
			}
		}
		if n := words(s.text); n > longest && !t.name {
			c.found = append(c.found, fmt.Sprintf("%s:%d: a sentence of %d words, at most %d are allowed: %.60s…", path, t.line+s.line, n, longest, oneLine(s.text)))
		}
	}
}

// allowed reports whether an exception allows a sentence.
func (c *check) allowed(path, text string) bool {
	text = oneLine(text)
	for _, e := range c.exceptions {
		if e.path == path && strings.Contains(text, e.text) {
			e.used = true
			return true
		}
	}
	return false
}

// unused reports exceptions that allow nothing.
func (c *check) unused() {
	for _, e := range c.exceptions {
		if !e.used {
			c.found = append(c.found, fmt.Sprintf("hack/words/exceptions.txt: %s has no such text any more: %s", e.path, e.text))
		}
	}
}
