package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// A text is prose of a file.
type text struct {
	// line is that of its start.
	line int
	// plain is the prose, without code, marks and addresses, with the file's line breaks.
	plain string
	// name says that it is the name of a test, which is no sentence.
	name bool
}

// generated matches files that a program writes; their sources are checked.
var generated = regexp.MustCompile(`(^|/)(zz_generated|testdata/|LICENSE|package-lock\.json|go\.(mod|sum)$)|/crds/[^/]*\.yaml$|^docs/reference/api|^charts/[^/]+/values\.schema\.json$|^hack/words/`)

// texts returns the prose of a file, by its kind.
func texts(path string, content []byte) []text {
	base := filepath.Base(path)
	switch ext := filepath.Ext(path); {
	case generated.MatchString(path):
		return nil
	case ext == ".go":
		return goTexts(path, content)
	case ext == ".md":
		return markdown(string(content))
	case base == "NOTES.txt", ext == ".tpl":
		return templates(string(content), base == "NOTES.txt")
	case ext == ".yaml", ext == ".yml", ext == ".sh", base == "Makefile", base == "run", base == "CODEOWNERS":
		return hashes(string(content))
	}
	return nil
}

var (
	directive = regexp.MustCompile(`^//([a-z]+:|nolint|export |line )|^//\s*\+`)
	code      = regexp.MustCompile("`[^`]*`")
	address   = regexp.MustCompile(`https?://\S+`)
	// word matches what counts as one in a sentence.
	word = regexp.MustCompile(`[\p{L}\p{N}]`)
)

// goTexts returns comments, string literals that are sentences, and the names of tests.
func goTexts(path string, content []byte) []text {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, content, parser.ParseComments)
	if err != nil {
		return nil // It does not compile; others say so.
	}
	var all []text
	if ast.IsGenerated(parsed) {
		return nil
	}
	named := documented(parsed)
	for _, group := range parsed.Comments {
		t := comment(files, group)
		for _, name := range named[group] {
			t.plain = strings.Replace(t.plain, name, "X", 1)
		}
		all = append(all, t)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				n.Tag = nil
			}
		case *ast.FuncDecl:
			if strings.HasSuffix(path, "_test.go") && strings.HasPrefix(n.Name.Name, "Test") {
				all = append(all, text{line: files.Position(n.Pos()).Line, plain: unCamel(n.Name.Name), name: true})
			}
		case *ast.BasicLit:
			value, err := strconv.Unquote(n.Value)
			if n.Kind != token.STRING || err != nil || strings.Contains(value, "\n") {
				break
			}
			switch t := (text{line: files.Position(n.Pos()).Line, plain: prose(value)}); {
			case strings.Count(value, " ") >= 2:
				all = append(all, t)
			case strings.HasSuffix(path, "_test.go") && !strings.Contains(value, " "):
				t.plain, t.name = unCamel(value), true
				all = append(all, t)
			}
		}
		return true
	})
	return all
}

// documented returns the names that doc comments are for, and begin with.
func documented(parsed *ast.File) map[*ast.CommentGroup][]string {
	all := map[*ast.CommentGroup][]string{}
	add := func(doc *ast.CommentGroup, names ...*ast.Ident) {
		for _, n := range names {
			all[doc] = append(all[doc], n.Name)
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Doc, n.Name)
		case *ast.GenDecl:
			for _, s := range n.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(n.Doc, s.Name)
					add(s.Doc, s.Name)
				case *ast.ValueSpec:
					add(n.Doc, s.Names...)
					add(s.Doc, s.Names...)
				}
			}
		case *ast.Field:
			add(n.Doc, n.Names...)
		}
		return true
	})
	return all
}

// comment returns a group of comments without directives and code.
func comment(files *token.FileSet, group *ast.CommentGroup) text {
	first := files.Position(group.Pos()).Line
	var plain []string
	for _, c := range group.List {
		for len(plain) < files.Position(c.Pos()).Line-first {
			plain = append(plain, "")
		}
		line := strings.TrimPrefix(c.Text, "//")
		if directive.MatchString(c.Text) || strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "    ") {
			line = ""
		}
		plain = append(plain, paragraphs(line))
	}
	return text{line: first, plain: prose(strings.Join(plain, "\n"))}
}

// item matches the start of an item of a list.
var item = regexp.MustCompile(`^\s*([-*+]|\d+\.) `)

// paragraphs sets the item of a list apart from what is before it.
func paragraphs(line string) string {
	return item.ReplaceAllString(line, stop+" ")
}

// stop ends a sentence where the text has no full stop.
const stop = "\x01"

// prose takes out code and addresses, each of which counts as a word.
func prose(s string) string {
	return address.ReplaceAllString(code.ReplaceAllString(s, "X"), "X")
}

// unCamel splits a name into words in lower case.
func unCamel(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

var (
	mdLink = regexp.MustCompile(`\]\([^)]*\)`)
	mdTags = regexp.MustCompile(`<!--.*?-->|</?[a-z][^>]*>`)
)

// markdown returns the prose of a page: each line of a table, heading, item or paragraph in its place.
func markdown(content string) []text {
	var plain []string
	fenced, matter := false, strings.HasPrefix(content, "---\n")
	listed, apart := false, false // In a list; after an empty line or code.
	for i, line := range strings.Split(content, "\n") {
		trimmed := strings.TrimSpace(line)
		indented := strings.HasPrefix(line, "    ")
		code := apart && indented && !listed
		if apart = trimmed == "" || code; trimmed != "" && !indented {
			listed = item.MatchString(line) || (listed && strings.HasPrefix(line, " "))
		}
		switch {
		case code:
			line = stop
		case matter:
			matter = i == 0 || trimmed != "---"
			line = stop
		case strings.HasPrefix(trimmed, "```"):
			fenced, line = !fenced, stop
		case fenced:
			line = ""
		case strings.HasPrefix(trimmed, "|"):
			line = stop + strings.ReplaceAll(line, "|", stop) + stop
		case strings.HasPrefix(trimmed, "#"):
			line = stop + strings.TrimLeft(trimmed, "# ") + "?" + stop // A heading may ask.
		}
		line = mdTags.ReplaceAllString(mdLink.ReplaceAllString(line, "]"), "")
		plain = append(plain, paragraphs(line))
	}
	return []text{{line: 1, plain: prose(strings.Join(plain, "\n"))}}
}

// hashes returns the comments of a file whose comments start with #.
func hashes(content string) []text {
	var plain []string
	for i, line := range strings.Split(content, "\n") {
		before, after, found := strings.Cut(line, "# ")
		if i == 0 && strings.HasPrefix(line, "#!") || !found || strings.HasSuffix(before, "$") || strings.HasSuffix(before, "{") {
			plain = append(plain, stop)
			continue
		}
		if strings.TrimSpace(strings.TrimLeft(before, "#")) != "" {
			after = stop + after
		}
		plain = append(plain, paragraphs(after))
	}
	return []text{{line: 1, plain: prose(strings.Join(plain, "\n"))}}
}

var action = regexp.MustCompile(`(?s)\{\{-?\s*(/\*)?.*?\}\}`)

// templates returns the comments of a template's actions. In notes, the text outside of actions is prose too.
func templates(content string, notes bool) []text {
	var plain strings.Builder
	outside := func(s string) {
		if !notes {
			s = strings.Repeat("\n", strings.Count(s, "\n"))
		}
		plain.WriteString(s)
	}
	at := 0
	for _, a := range action.FindAllStringIndex(content, -1) {
		outside(content[at:a[0]])
		inside := content[a[0]:a[1]]
		if strings.Contains(inside, "/*") {
			plain.WriteString(stop + marks.Replace(inside) + stop)
		} else {
			plain.WriteString(strings.Repeat("\n", strings.Count(inside, "\n")))
		}
		at = a[1]
	}
	outside(content[at:])
	return []text{{line: 1, plain: prose(plain.String())}}
}

// marks takes out what an action with a comment begins and ends with.
var marks = strings.NewReplacer("{{-", "", "{{", "", "/*", "", "*/", "", "-}}", "", "}}", "")

// A sentence is a part of a text.
type sentence struct {
	text string
	// line is counted from that of the text.
	line int
}

var end = regexp.MustCompile(`[.?!]["')]*(\s|$)|\x01|\n\s*\n`)

// sentences splits a text.
func sentences(plain string) []sentence {
	var all []sentence
	start := 0
	add := func(to int) {
		text := strings.TrimLeft(plain[start:to], " \t\n")
		all = append(all, sentence{text: strings.TrimRight(text, " \t\n\x01"), line: strings.Count(plain[:to-len(text)], "\n")})
		start = to
	}
	for _, at := range end.FindAllStringIndex(plain, -1) {
		add(at[1])
	}
	add(len(plain))
	return all
}

// words counts what has a letter or a digit.
func words(s string) int {
	n := 0
	for _, f := range strings.Fields(s) {
		if word.MatchString(f) {
			n++
		}
	}
	return n
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
