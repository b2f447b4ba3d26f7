package census

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A source is one parsed Go file.
type source struct {
	name  string
	text  []byte
	files *token.FileSet
	ast   *ast.File
}

// sources parses the Go files below a folder of the root in which one of the words is.
func sources(root fs.FS, folder string, words ...string) ([]source, error) {
	var all []source
	err := fs.WalkDir(root, folder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && name != "." ||
			d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		has := func(word string) bool { return bytes.Contains(text, []byte(word)) }
		if err != nil || !slices.ContainsFunc(words, has) {
			return err
		}
		s := source{name: name, text: text, files: token.NewFileSet()}
		s.ast, err = parser.ParseFile(s.files, name, text, parser.SkipObjectResolution)
		all = append(all, s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the source in %s: %w", folder, err)
	}
	return all, nil
}

func (s source) folder() string { return path.Dir(s.name) }

// item describes a part of the source.
func (s source) item(kind, name string, n ast.Node) Item {
	return Item{Kind: kind, Name: name, shingles: shingles(code(s.between(n))),
		Where: fmt.Sprintf("%s:%d", s.name, s.files.Position(n.Pos()).Line)}
}

// between returns the text of a node.
func (s source) between(n ast.Node) []byte {
	return s.text[s.files.Position(n.Pos()).Offset:s.files.Position(n.End()).Offset]
}

// code returns the tokens of a piece of Go. Literals and names are all alike, but for what is
// called or selected: that says what the code is about.
func code(text []byte) []string {
	var sc scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	sc.Init(file, text, func(token.Position, string) {}, 0)
	var words []string
	for selected := false; ; {
		_, tok, lit := sc.Scan()
		switch {
		case tok == token.EOF:
			return words
		case tok == token.LPAREN && len(words) > 0 && strings.HasPrefix(words[len(words)-1], "?"):
			words[len(words)-1] = words[len(words)-1][1:] // called: it keeps its name
			words = append(words, "(")
		case tok == token.IDENT && selected:
			words = append(words, lit)
		case tok == token.IDENT:
			words = append(words, "?"+lit)
		case tok.IsLiteral():
			words = append(words, "literal")
		case tok != token.SEMICOLON:
			words = append(words, tok.String())
		}
		if n := len(words); n > 1 && tok != token.LPAREN {
			if before := words[n-2]; strings.HasPrefix(before, "?") {
				words[n-2] = "name"
			}
		}
		selected = tok == token.PERIOD
	}
}

// trials finds the cases of the conformance suites: of backends, where each is a value with a
// name and a function, and of stores, where each is a function of a subject.
func trials(root fs.FS) ([]Item, error) {
	var all []Item
	for _, folder := range []string{"hypervisor/hypervisortest/internal", "record/storetest"} {
		files, err := sources(root, folder, "Run:", "Subject")
		if err != nil {
			return nil, err
		}
		for _, s := range files {
			ast.Inspect(s.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CompositeLit:
					if name := trial(n); name != "" {
						all = append(all, s.item("case of a backend", name, n))
					}
				case *ast.FuncDecl:
					if ofSubject(n.Type) {
						all = append(all, s.item("case of a store", n.Name.Name, n.Body))
					}
				}
				return true
			})
		}
	}
	return all, nil
}

// trial returns the name of a literal that has a Name and a Run, "" for others.
func trial(c *ast.CompositeLit) (name string) {
	runs := false
	for _, e := range c.Elts {
		field, is := e.(*ast.KeyValueExpr)
		if !is {
			continue
		}
		key, _ := field.Key.(*ast.Ident)
		text, isText := field.Value.(*ast.BasicLit)
		switch {
		case key != nil && key.Name == "Name" && isText:
			name, _ = strconv.Unquote(text.Value)
		case key != nil && key.Name == "Run":
			runs = true
		}
	}
	if !runs {
		return ""
	}
	return name
}

// ofSubject reports whether a function is func(*testing.T, Subject).
func ofSubject(f *ast.FuncType) bool {
	p := f.Params.List
	if len(p) != 2 || len(p[1].Names) != 1 {
		return false
	}
	of, is := p[1].Type.(*ast.Ident)
	return is && of.Name == "Subject"
}
