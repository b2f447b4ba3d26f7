package planner

import (
	"fmt"
	"strings"
)

// names lists names in one line.
func names[T ~string](all []T) string {
	var texts []string
	for i, name := range all {
		if i == 10 && len(all) > 12 {
			texts = append(texts, fmt.Sprintf("… and %d more", len(all)-i))
			break
		}
		texts = append(texts, string(name))
	}
	return strings.Join(texts, ", ")
}
