package predict

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/yamldoc"
)

// IsNova reports whether a file begins as Nova's answers about server migrations do.
func IsNova(head string) bool {
	return strings.HasPrefix(strings.Join(strings.Fields(head), ""), `{"migration`)
}

// novaTime is how Nova writes times, in UTC.
const novaTime = "2006-01-02T15:04:05.999999"

// novaAnswer is one answer of Nova: of all migrations of a server, or of one.
type novaAnswer struct {
	Migrations []novaMigration `json:"migrations"`
	Migration  *novaMigration  `json:"migration"`
}

// novaMigration is a live migration that runs, as far as it had come.
// Source: docs.openstack.org/api-ref/compute (GET /servers/{server_id}/migrations, from version 2.23).
type novaMigration struct {
	ID        int    `json:"id"`
	Server    string `json:"server_uuid"`
	Source    string `json:"source_compute"`
	Target    string `json:"dest_compute"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
	Total     *int64 `json:"memory_total_bytes"` // null: nothing was sent yet
	Processed *int64 `json:"memory_processed_bytes"`
	Remaining *int64 `json:"memory_remaining_bytes"`

	created, updated time.Time
}

// ReadNova reads what Nova answers about server migrations while they run, one answer after the other:
// the same migration several times, as it goes on. It tells how many migrations cannot be used: of
// which nothing was sent yet, that were asked about for less than ten seconds, or not until 95 % of the
// memory had been sent. A migration is taken to have gone on as it did between its first and its last
// answer. Downtimes, caps and links are not in it. An error is [yamldoc.Problems], unless r fails.
func ReadNova(name string, r io.Reader) (all []Observation, skipped int, err error) {
	report := yamldoc.Report{File: name}
	moves := map[string][]novaMigration{}
	d := json.NewDecoder(io.LimitReader(r, mostAnswer))
	for n := 1; !report.Full(); n++ {
		var a novaAnswer
		if err := d.Decode(&a); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			report.Errorf(n, "", "answer %d is none of Nova about server migrations: %v", n, err)
			break
		}
		if a.Migration != nil {
			a.Migrations = append(a.Migrations, *a.Migration)
		}
		for _, m := range a.Migrations {
			if err := m.times(); err != nil {
				report.Errorf(n, "", "answer %d: %v", n, err)
				continue
			}
			key := fmt.Sprint(m.Server, " ", m.ID)
			moves[key] = append(moves[key], m)
		}
	}
	if err := report.Err(); err != nil {
		return nil, 0, err
	}
	for _, key := range slices.Sorted(maps.Keys(moves)) {
		if o, taken := novaObservation(moves[key]); taken {
			o.Line = len(all) + 1
			all = append(all, o)
		} else {
			skipped++
		}
	}
	return all, skipped, nil
}

// times reads the times of an answer.
func (m *novaMigration) times() (err error) {
	if m.created, err = time.Parse(novaTime, m.CreatedAt); err != nil {
		return fmt.Errorf("created_at: %w", err)
	}
	if m.UpdatedAt == "" { // nothing has changed yet
		m.updated = m.created
		return nil
	}
	if m.updated, err = time.Parse(novaTime, m.UpdatedAt); err != nil {
		return fmt.Errorf("updated_at: %w", err)
	}
	return nil
}

// novaObservation makes an observation of the answers about one migration.
func novaObservation(all []novaMigration) (o Observation, taken bool) {
	all = slices.DeleteFunc(slices.Clone(all), func(m novaMigration) bool {
		return m.Total == nil || m.Processed == nil || m.Remaining == nil || *m.Processed <= 0 ||
			*m.Total <= int64(hypervisor.MiB) || *m.Total >= 1<<50 || *m.Processed >= 1<<60
	})
	if len(all) == 0 {
		return o, false
	}
	slices.SortStableFunc(all, func(a, b novaMigration) int { return a.updated.Compare(b.updated) })
	first, last := &all[0], &all[len(all)-1]
	span, sent := last.updated.Sub(first.updated), *last.Processed-*first.Processed
	if span < shortest || sent <= 0 || *last.Remaining > *last.Total/20 {
		return o, false
	}
	took := time.Duration(float64(span) * float64(*last.Processed) / float64(sent))
	return Observation{Host: last.Source, Target: last.Target, Memory: hypervisor.Bytes(*last.Total),
		Sent: hypervisor.Bytes(*last.Processed), Began: last.updated.Add(-took), Total: took,
		NoDowntime: true}, true
}
