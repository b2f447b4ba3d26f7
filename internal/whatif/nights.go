package whatif

import (
	"fmt"
	"time"

	"github.com/godwit-vm/godwit/internal/humanize"
	"github.com/godwit-vm/godwit/internal/predict"
	"github.com/godwit-vm/godwit/plan"
)

// A Calendar is which batches are serviced in which nights.
type Calendar struct {
	Nights []CalendarNight `json:"nights"`
	// Left are the batches that are in no night, from the first on that fits into none.
	Left []CalendarGap `json:"left"`
	// Probability is that all batches that are in a night end in it. They are taken to be off by as much.
	Probability float64 `json:"probability"`
}

// A CalendarNight is one night with its batches.
type CalendarNight struct {
	plan.Night
	Batches []CalendarBatch `json:"batches"`
}

// A CalendarBatch is a batch in a night.
type CalendarBatch struct {
	Batch  int       `json:"batch"` // from 1; the way home comes after the last
	Begins time.Time `json:"begins"`
	// Ends is when it ends as likely as not, and Probability that it ends in its night.
	Ends        time.Time `json:"ends"`
	Probability float64   `json:"probability"`
}

// A CalendarGap is a batch that is in no night.
type CalendarGap struct {
	Batch int    `json:"batch"`
	Text  string `json:"text"`
	// Long says that it is too long for every night, so that fewer hosts at once would help.
	Long bool `json:"tooLong"`
}

// Calendar puts the batches into nights, in order: each into the first in which it ends with the
// probability that is asked for, after those before it. Service is how long the hosts of a batch are away
// once they are empty.
func (t *Schedule) Calendar(nights []plan.Night, confidence float64, service time.Duration) *Calendar {
	c := &Calendar{Nights: []CalendarNight{}, Left: []CalendarGap{}, Probability: 1}
	n, used, away := 0, predict.Range{}, 0.0
	for i := range len(t.Batches) + 1 {
		batch, stay := t.Back, 0.0
		if i < len(t.Batches) {
			batch, stay = &t.Batches[i], service.Seconds()
		}
		switch {
		case batch == nil:
			continue
		case batch.Range == nil:
			c.leave(i, "some of its VMs do not move", false)
			return c
		}
		for ; n < len(nights); n, used, away = n+1, (predict.Range{}), 0 {
			left := nights[n].Length().Seconds() - away - stay
			if used.Plus(*batch.Range).Below(left) >= confidence-rounding {
				break
			}
		}
		if n == len(nights) {
			c.tooLong(i, batch, nights, confidence, stay)
			return c
		}
		begins := nights[n].Begin.Add(seconds64(used.P50 + away))
		used, away = used.Plus(*batch.Range), away+stay
		b := CalendarBatch{Batch: i + 1, Begins: begins, Ends: nights[n].Begin.Add(seconds64(used.P50 + away)),
			Probability: used.Below(nights[n].Length().Seconds() - away)}
		c.Probability = min(c.Probability, b.Probability)
		if last := len(c.Nights) - 1; last >= 0 && c.Nights[last].Begin.Equal(nights[n].Begin) {
			c.Nights[last].Batches = append(c.Nights[last].Batches, b)
		} else {
			c.Nights = append(c.Nights, CalendarNight{nights[n], []CalendarBatch{b}})
		}
	}
	return c
}

// rounding is by how much a probability may be off because its times are not exact.
const rounding = 1e-9

func seconds64(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (c *Calendar) leave(batch int, text string, long bool) {
	c.Left = append(c.Left, CalendarGap{Batch: batch + 1, Text: text, Long: long})
}

// tooLong says why a batch, and those after it, are in no night.
func (c *Calendar) tooLong(batch int, b *Batch, nights []plan.Night, confidence, stay float64) {
	longest := 0.0
	for _, n := range nights {
		longest = max(longest, n.Length().Seconds())
	}
	if p := b.Range.Below(longest - stay); p < confidence {
		c.leave(batch, fmt.Sprintf("it takes %s, p90 %s, and the longest night has %s: it would end in time with a "+
			"probability of %.0f%%", humanize.Span(b.Range.P50+stay), humanize.Span(b.Range.P90+stay), humanize.Span(longest),
			100*p), true)
		return
	}
	c.leave(batch, fmt.Sprintf("the last of %s is full", humanize.Count(len(nights), "night")), false)
}
