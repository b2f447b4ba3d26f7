package predict_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/predict"
)

// shown writes what Nova answers about a server's migration that began so many seconds after noon.
func shown(id int, source string, created, at int, processed, remaining, total int64) string {
	clock := func(s int) string {
		return time.Date(2026, 3, 1, 12, 0, s, 0, time.UTC).Format("2006-01-02T15:04:05.000000")
	}
	return fmt.Sprintf(`{"migrations": [{"created_at": %q, "dest_compute": "compute2", "dest_host": "1.2.3.4",
	"dest_node": "node2", "disk_processed_bytes": 0, "disk_remaining_bytes": 0, "disk_total_bytes": 0, "id": %d,
	"memory_processed_bytes": %d, "memory_remaining_bytes": %d, "memory_total_bytes": %d,
	"server_uuid": "4cfba335-03d8-49b2-8c52-e69043d1e8fe", "source_compute": %q, "source_node": "node1",
	"status": "running", "updated_at": %q}]}`+"\n", clock(created), id, processed, remaining, total, source, clock(at))
}

// Worked out by hand: 8 GB of 9 were sent in 20 s, so all 9 took 22.5 s, and began 2.5 s before the first
// answer, however long Nova had prepared before.
func TestServerMigrationsOfNovaAreRead(t *testing.T) {
	const gb = 1_000_000_000
	text := shown(1, "compute1", 0, 100, 1*gb, 7*gb, 8*gb) + shown(1, "compute1", 0, 110, 5*gb, 3*gb, 8*gb) +
		shown(1, "compute1", 0, 120, 9*gb, gb/10, 8*gb) +
		shown(2, "compute1", 0, 100, 1*gb, 7*gb, 8*gb) + // asked about once
		shown(3, "compute1", 0, 100, 1*gb, 7*gb, 8*gb) + shown(3, "compute1", 0, 120, 3*gb, 5*gb, 8*gb) + // not to its end
		`{"migration": {"id": 4, "server_uuid": "x", "created_at": "2026-03-01T12:00:00.000000", "updated_at": null,
		"memory_total_bytes": null, "memory_processed_bytes": null, "memory_remaining_bytes": null}}`
	if !predict.IsNova(text) || predict.IsNova(`{"status": "success"}`) {
		t.Error("it is told from other files wrongly")
	}
	all, skipped, err := predict.ReadNova("nova.json", strings.NewReader(text))
	if err != nil || len(all) != 1 || skipped != 3 {
		t.Fatalf("%v %+v, %d skipped", err, all, skipped)
	}
	want := predict.Observation{Line: 1, Host: "compute1", Target: "compute2", Memory: 8 * gb, Sent: 9 * gb,
		Began: time.Date(2026, 3, 1, 12, 1, 37, 500_000_000, time.UTC), Total: 22500 * time.Millisecond, NoDowntime: true}
	if all[0] != want {
		t.Errorf("%+v, want %+v", all[0], want)
	}
	for text, want := range map[string]string{
		`{"migrations": 7}`: "nova.json:1", shown(1, "c", 0, 1, 1, 1, 1) + "{": "nova.json:2",
		`{"migration": {"id": 1, "created_at": "noon"}}`: "created_at"} {
		if _, _, err := predict.ReadNova("nova.json", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// As with KubeVirt's metrics: migrations at 400 MB/s that are asked about every ten seconds.
func TestAFitToNovasMigrationsFindsTheSpeed(t *testing.T) {
	const speed = 400_000_000
	var text strings.Builder
	for i := range 10 {
		total := int64(12+4*(i%3)) << 30
		for at := 10; int64(at)*speed < total+10*speed; at += 10 {
			sent := min(total, int64(at)*speed)
			last := at
			if sent == total {
				last = int(math.Round(float64(total) / speed))
			}
			text.WriteString(shown(i, fmt.Sprint("compute", i%2), 100*i, 100*i+30+last, sent, total-sent, total))
		}
	}
	all, skipped, err := predict.ReadNova("nova.json", strings.NewReader(text.String()))
	if err != nil || skipped > 0 {
		t.Fatal(err, skipped)
	}
	for i := range all {
		all[i].Link = 100 * hypervisor.Gbit
	}
	r, err := predict.Fit(predict.Infer(all), fake.QEMU())
	if err != nil {
		t.Fatal(err)
	}
	if r.Refused != "" || r.Held != "host" || r.Validated.All.Total.P90 > 0.07 || r.Before.All.Total.Median < 0.5 {
		t.Errorf("refused %q, held %s, before %+v, validated %+v", r.Refused, r.Held, r.Before.All, r.Validated.All)
	}
}
