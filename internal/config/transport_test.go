package config_test

import (
	"math"
	"strings"
	"testing"

	"github.com/godwit-vm/godwit/internal/config"
)

const transported = `
hosts: [{name: "n[1-2]", memory: 64GiB, cpus: 32, link: 10Gbit/s}]
vms: [{name: v, host: n1, memory: 30GiB, cpus: 2, dirty: 1KiB/s, workingSet: 1MiB}]
events: [0s migrate v]
`

// The judge is arithmetic on what was measured: 30 GiB over the speed of one connection, of several,
// or of the link of 1.25 GB/s, whichever is less.
func TestTransportSetsTheSpeed(t *testing.T) {
	const bytes = 30 * float64(1<<30)
	for text, speed := range map[string]float64{
		"transport: {}": 1.25e9,
		"transport: {encryption: none, connections: 8}":      1.25e9,
		"transport: {encryption: tls-x509, connections: 1}":  300e6,
		"transport: {encryption: tls-x509, connections: 2}":  600e6,
		"transport: {encryption: tls-x509}":                  1.25e9, // eight of them fill the link
		"transport: {encryption: tls-psk, connections: 1}":   100e6,
		"transport: {encryption: tls-psk}":                   800e6,
		"transport: {encryption: tls-psk, connections: 255}": 1.25e9,
	} {
		r := ran(t, transported+text+"\n")
		if want := bytes / speed; r.Migrations.Succeeded != 1 || math.Abs(r.VirtualSeconds/want-1) > 0.05 {
			t.Errorf("%s: %+v after %.1f s, want %.1f s", text, r.Migrations, r.VirtualSeconds, want)
		}
	}
}

func TestWhatIsWrongWithTransport(t *testing.T) {
	for text, want := range map[string]string{
		"transport: {encryption: rot13}": "transport.encryption",
		"transport: {connections: 0}":    "transport.connections",
		"transport: {connections: 256}":  "transport.connections",
		"transport: {cipher: aes}":       "cipher",
	} {
		_, err := config.Parse("scenario.yaml", []byte(transported+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "scenario.yaml:5") {
			t.Errorf("%s: %v, want line 5 and %q", text, err, want)
		}
	}
}
