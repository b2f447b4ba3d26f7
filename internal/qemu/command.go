package qemu

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// A Command is what a client asks for.
type Command struct {
	Name      string
	Arguments json.RawMessage // nil: none
	OutOfBand bool
	ID        uint64
}

// Encode encodes arguments, nil if there are none. It fails if they cannot be
// encoded or are more than QEMU reads.
func Encode(arguments any) (json.RawMessage, error) {
	if arguments == nil {
		return nil, nil
	}
	encoded, err := json.Marshal(arguments)
	if err == nil {
		err = checkForQEMU(encoded)
	}
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	return encoded, nil
}

// Line returns the line that a client writes. It fails on a name that QEMU
// could not read.
func (c Command) Line() ([]byte, error) {
	name, err := json.Marshal(c.Name)
	if err == nil {
		err = checkForQEMU(name)
	}
	if err != nil {
		return nil, fmt.Errorf("name: %w", err)
	}
	verb := "execute"
	if c.OutOfBand {
		verb = "exec-oob"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"%s":%s`, verb, name)
	if c.Arguments != nil {
		fmt.Fprintf(&b, `,"arguments":%s`, c.Arguments)
	}
	fmt.Fprintf(&b, `,"id":%d}`+"\n", c.ID)
	return b.Bytes(), nil
}

// The limits of QEMU's parser, with room for what is put around the arguments.
// Source: QEMU 7.2 qobject/json-streamer.c (MAX_TOKEN_SIZE, MAX_NESTING).
const (
	maxArguments = 64<<20 - 4096 // bytes
	maxNesting   = 1024 - 8
)

// checkForQEMU refuses what QEMU's parser refuses: it answers such a line
// without an id, and with more than one error, so that one could not tell whose
// they are. Source: QEMU 7.2 util/unicode.c (is_valid_codepoint).
func checkForQEMU(encoded []byte) error {
	if len(encoded) > maxArguments {
		return fmt.Errorf("%d bytes are more than the %d that QEMU reads", len(encoded),
			maxArguments)
	}
	depth := 0
	quoted, escaped := false, false
	for i := 0; i < len(encoded); {
		c, size := utf8.DecodeRune(encoded[i:])
		i += size
		switch {
		case c == utf8.RuneError && size == 1, nonCharacter(c):
			return fmt.Errorf("byte %d begins %U, which QEMU does not take for text", i-size, c)
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			depth++
		case !quoted && (c == '}' || c == ']'):
			depth--
		}
		if depth > maxNesting {
			return fmt.Errorf("they are nested deeper than the %d levels that QEMU reads",
				maxNesting)
		}
	}
	return nil
}

func nonCharacter(c rune) bool { return c >= 0xfdd0 && c <= 0xfdef || c&0xfffe == 0xfffe }
