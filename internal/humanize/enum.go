package humanize

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// String returns the word of v, and says so when it has none.
func String[T ~uint8](v T, words []string) string {
	if int(v) < len(words) {
		return words[v]
	}
	return fmt.Sprintf("invalid(%d)", uint8(v))
}

// Text returns the word of v, as it is stored: renumbering cannot corrupt the past. what names the
// enumeration in errors.
func Text[T ~uint8](v T, words []string, what string) ([]byte, error) {
	if int(v) >= len(words) {
		return nil, fmt.Errorf("no %s has the number %d", what, uint8(v))
	}
	return []byte(words[v]), nil
}

// Parse sets v to what the word means.
func Parse[T ~uint8](v *T, words []string, what string, text []byte) error {
	i := slices.Index(words, string(text))
	if i < 0 {
		return fmt.Errorf("unknown %s %q: want one of %s", what, text, strings.Join(words, ", "))
	}
	*v = T(i)
	return nil
}

// JSON is Parse of a JSON value. It reads a number, too: some enumerations were once stored
// so.
func JSON[T ~uint8](v *T, words []string, what string, data []byte) error {
	var number uint8
	if json.Unmarshal(data, &number) == nil {
		if int(number) >= len(words) {
			return fmt.Errorf("no %s has the number %d", what, number)
		}
		*v = T(number)
		return nil
	}
	var word string
	if err := json.Unmarshal(data, &word); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return Parse(v, words, what, []byte(word))
}
