package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/godwit-vm/godwit/internal/yamldoc"
)

// Plain returns a writer of text for people that shows what a terminal would act on instead of
// printing it, since names come from files of others: \x1b instead of an escape. Ends of lines
// and tabs stay.
func Plain(out io.Writer) io.Writer { return plain{out} }

type plain struct{ out io.Writer }

// Write is given whole characters: one that is cut is shown as broken.
func (p plain) Write(text []byte) (int, error) {
	clean := func(c rune) bool { return c == '\n' || c == '\t' || !yamldoc.Unprintable(c) }
	var b strings.Builder
	from := 0
	for at := 0; at < len(text); {
		c, size := utf8.DecodeRune(text[at:])
		if !clean(c) {
			b.Write(text[from:at])
			fmt.Fprintf(&b, "\\x%02x", c)
			from = at + size
		}
		at += size
	}
	if from == 0 {
		return p.out.Write(text)
	}
	b.Write(text[from:])
	if _, err := io.WriteString(p.out, b.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}
