package qemu_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/internal/qemu"
)

// TestLinesSurviveAnyCutting feeds lines in pieces of any size.
func TestLinesSurviveAnyCutting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z{}"]{1,40}`)
		want := rapid.SliceOf(word).Draw(t, "lines")
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\r\n\r\n", " \n"}).Draw(t, "end")
		var stream strings.Builder
		for _, line := range want {
			stream.WriteString(line + end)
		}
		from := &pieces{data: []byte(stream.String()), t: t}
		r := qemu.NewReader(from, 64)
		var got []string
		for {
			line, err := r.Next()
			if err != nil {
				if err != io.EOF {
					t.Fatalf("got %v, want the end", err)
				}
				break
			}
			got = append(got, string(line))
		}
		if !slices.Equal(want, got) {
			t.Fatal(cmp.Diff(want, got))
		}
	})
}

// pieces reads a few bytes at a time, and at times none.
type pieces struct {
	data []byte
	t    *rapid.T
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(b) == 0 {
		p.t.Fatal("asked to read nothing")
	}
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := rapid.IntRange(0, min(len(b), len(p.data))).Draw(p.t, "piece")
	n = copy(b[:n], p.data)
	p.data = p.data[n:]
	return n, nil
}

func TestReaderRefuses(t *testing.T) {
	for _, row := range []struct {
		name, stream string
		protocol     bool
		is           error
	}{
		{"a line that is one byte too long", strings.Repeat("x", 100) + "\n", true, nil},
		{"a line without end", strings.Repeat("x", 5000), true, nil},
		{"half a line, then the end", `{"return":{}}`, false, io.ErrUnexpectedEOF},
		{"nothing", "", false, io.EOF},
		{"blank lines only", "\n \r\n\n" + strings.Repeat("\n", 1000), false, io.EOF},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := qemu.NewReader(strings.NewReader(row.stream), 100).Next()
			_, protocol := errors.AsType[*qemu.ProtocolError](err)
			if protocol != row.protocol || row.is != nil && !errors.Is(err, row.is) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestALineOfTheLimitIsRead(t *testing.T) {
	line := strings.Repeat("x", 99)
	got, err := qemu.NewReader(strings.NewReader("a\n"+line+"\n"+line+"\n"), 100).Next()
	if err != nil || string(got) != "a" {
		t.Fatal(got, err)
	}
	r := qemu.NewReader(strings.NewReader(line+"\n"+line+"\n"), 100)
	for range 2 {
		if got, err := r.Next(); err != nil || string(got) != line {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

func TestAnErrorOfTheStreamIsKept(t *testing.T) {
	broken := errors.New("broken")
	_, err := qemu.NewReader(iotest.ErrReader(broken), 100).Next()
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// TestALongLineIsNotAllocatedBeyondTheLimit watches how much the Reader asks
// for: never room for more than the limit.
func TestALongLineIsNotAllocatedBeyondTheLimit(t *testing.T) {
	const limit = 1 << 20
	endless := &greedy{}
	_, err := qemu.NewReader(endless, limit).Next()
	if _, ok := errors.AsType[*qemu.ProtocolError](err); !ok {
		t.Fatalf("got %v", err)
	}
	if endless.given != limit {
		t.Errorf("%d bytes were read, want %d", endless.given, limit)
	}
}

type greedy struct{ given int }

func (g *greedy) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	g.given += len(b)
	return len(b), nil
}

// TestManyLongAndShortLines makes the buffer grow, move and shrink.
func TestManyLongAndShortLines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var stream bytes.Buffer
	var want []int
	for i := range 200 {
		n := 1 + random.IntN(300)
		if i%10 == 0 {
			n = 1 + random.IntN(300_000)
		}
		want = append(want, n)
		fmt.Fprintf(&stream, "%s\n", strings.Repeat("x", n))
	}
	r := qemu.NewReader(iotest.HalfReader(&stream), 300_001)
	for i, n := range want {
		line, err := r.Next()
		if err != nil || len(line) != n {
			t.Fatalf("line %d: got %d bytes, %v; want %d", i, len(line), err, n)
		}
	}
}
