package sweep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// format is the first thing in the file of a shard.
const format = "godwit sweep shard 1"

// A head is the first line of a shard's file, an end its last: without it the file
// was cut off.
type head struct {
	Format string `json:"format"`
	Shard  Shard  `json:"shard"`
	Run    Run    `json:"run"`
}

type end struct {
	Complete bool `json:"complete"`
	Samples  int  `json:"samples"`
}

// WriteHead writes the line that the file of a shard begins with.
func WriteHead(out io.Writer, run Run, s Shard) error { return line(out, head{format, s, run}) }

// WriteSample writes the line of one sample.
func WriteSample(out io.Writer, s *Sample) error { return line(out, s) }

// WriteEnd writes the last line: how many samples there are, and whether that is
// all of the shard.
func WriteEnd(out io.Writer, samples int, complete bool) error {
	return line(out, end{complete, samples})
}

// A Part is what a shard came to.
type Part struct {
	Name    string // the file's
	Run     Run
	Shard   Shard
	Samples []Sample
}

// maxLine is how many bytes a line of a shard may have.
const maxLine = 4 << 20

// ReadPart reads the file of a shard, named for errors. It refuses what is no
// shard, and a shard that is not complete or has been changed.
func ReadPart(name string, in io.Reader) (*Part, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	var h head
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &h) != nil || h.Format != format {
		return nil, fmt.Errorf("%s:1: it is no shard of a sweep: write one with "+
			"godwit simulate --shard", name)
	}
	p := &Part{Name: name, Run: h.Run, Shard: h.Shard}
	if err := p.checkHead(); err != nil {
		return nil, fmt.Errorf("%s:1: %w", name, err)
	}
	last, err := p.readSamples(lines)
	if err == nil {
		err = p.checkEnd(last)
	}
	if err == nil {
		err = p.checkSamples()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// readSamples reads all lines as samples but the last, which it returns.
func (p *Part) readSamples(lines *bufio.Scanner) (last []byte, err error) {
	for n := 1; lines.Scan(); n++ {
		if n > 1 {
			var s Sample
			if err := strict(last, &s); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			p.Samples = append(p.Samples, s)
		}
		last = bytes.Clone(lines.Bytes())
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("a line is longer than %d MiB", maxLine>>20)
	}
	return last, lines.Err()
}

func strict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("there is more than one value in the line")
	}
	return nil
}

func (p *Part) checkHead() error {
	s := p.Shard
	if s.Count < 1 || s.Count > maxShards || s.Index < 1 || s.Index > s.Count {
		return fmt.Errorf("there is no shard %s", s)
	}
	return p.Run.Check()
}

func (p *Part) checkEnd(text []byte) error {
	var e end
	if strict(text, &e) != nil || e.Samples != len(p.Samples) {
		return fmt.Errorf("the file of shard %s is cut off: run it again", p.Shard)
	}
	if !e.Complete {
		return fmt.Errorf("shard %s was interrupted after %d samples: run it again", p.Shard,
			e.Samples)
	}
	return nil
}

// checkSamples refuses samples that are not the shard's, each once, in order.
func (p *Part) checkSamples() error {
	worlds := p.Shard.Worlds(p.Run.Worlds())
	is := slices.EqualFunc(worlds, p.Samples, func(w int, s Sample) bool {
		c, n := p.Run.World(w)
		return s.Combination == c && s.Sample == n
	})
	if !is {
		return fmt.Errorf("it does not have the %d samples of shard %s: run it again", len(worlds),
			p.Shard)
	}
	return nil
}
