package lint

import (
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// unfinished marks what was left for later; written in two halves, so that
// this file passes its own rule.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

// vague are words that hide which participant is meant: say the operator, the controller, no host,
// another process. They are written in halves, too.
var vague = regexp.MustCompile(`(?i)\b(no` + `body|some` + `body|every` + `body|any` + `body|who` + `ever|who` + `m)\b`)

// checkTexts applies the rules that need no syntax, to documents as well.
func (m *Module) checkTexts() []Finding {
	var found []Finding
	for _, t := range m.texts {
		for i, line := range t.lines {
			if word := unfinished.FindString(line); word != "" {
				at := token.Position{Filename: t.path, Line: i + 1}
				found = append(found, Finding{at, "words", word + " marks unfinished work"})
			}
			if word := vague.FindString(line); word != "" {
				at := token.Position{Filename: t.path, Line: i + 1}
				found = append(found, Finding{at, "words", word + ": name the participant that is meant"})
			}
		}
	}
	return found
}

// mixed lists words that the module does not use for source and target.
var mixed = []string{"src", "dst", "destination"}

// findMixedNames reports identifiers that the module declares with a word for
// source or target other than these two.
func findMixedNames(m *Module, report func(token.Pos, string, ...any)) {
	for _, u := range m.units {
		for name, object := range u.info.Defs {
			if object == nil {
				continue // the package's own name
			}
			for _, word := range words(name.Name) {
				if slices.Contains(mixed, word) {
					report(name.Pos(), "%s: say source or target", name.Name)
				}
			}
		}
	}
}

// words splits an identifier at its capitals and underscores, in lower case.
func words(name string) []string {
	var spaced strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		next := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || next) {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(spaced.String(), func(r rune) bool { return r == ' ' || r == '_' })
}
