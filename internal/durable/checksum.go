package durable

import (
	"bytes"
	"fmt"
	"hash/crc32"
)

// The last field of a record is a sum over its text without that field: a disk that gives back
// something else is noticed although it may be JSON, too. A record of an earlier godwit has none.
const (
	sumBegins = ",\n\t\"checksum\": \"crc32c:"
	sumEnds   = "\"\n}"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// summed returns the text of a record with its sum. What is no object, or an empty one, has none.
func summed(text []byte) []byte {
	body, is := bytes.CutSuffix(text, []byte("\n}"))
	if !is {
		return text
	}
	return fmt.Appendf(body[:len(body):len(body)], "%s%08x%s", sumBegins, crc32.Checksum(text, castagnoli), sumEnds)
}

// unsummed returns the text of a record without its sum. The error is that they do not fit: what else
// is wrong with the text says more.
func unsummed(text []byte) ([]byte, error) {
	const digits = 8
	at := bytes.Index(text, []byte(sumBegins)) // a line of its own, which no text in a record has
	if at < 0 {
		return text, nil
	}
	said := text[at+len(sumBegins):]
	if len(said) < digits || !bytes.HasPrefix(said[digits:], []byte(sumEnds)) {
		return text, nil
	}
	said, after := said[:digits], said[digits+len(sumEnds):]
	body := append(text[:at:at], "\n}"...)
	is := fmt.Appendf(nil, "%08x", crc32.Checksum(body, castagnoli))
	body = append(body, after...)
	if !bytes.Equal(is, said) {
		return body, fmt.Errorf("it was changed since it was written: its checksum is %.8q, and what is there "+
			"has %s (when you edit the file, remove the line with the checksum)", said, is)
	}
	return body, nil
}
