//go:build linux

package qemu_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/internal/qemu"
)

// launcher is a host whose QEMU lacks some capabilities and ways to compress.
func launcher(lacks ...string) *qemu.Launcher {
	l := &qemu.Launcher{Features: qemu.Features{Accelerator: "tcg",
		Capabilities: map[string]bool{}, Commands: map[string]bool{}, Parameters: map[string]bool{
			"tls-creds": true}}}
	lack := map[string]bool{}
	for _, name := range lacks {
		lack[name] = true
	}
	for _, name := range []string{"auto-converge", "postcopy-ram", "multifd", "xbzrle",
		"pause-before-switchover"} {
		l.Features.Capabilities[name] = !lack[name]
	}
	for _, name := range []string{"migrate-start-postcopy", "migrate-recover", "migrate-continue"} {
		l.Features.Commands[name] = !lack[name]
	}
	for _, name := range []string{"zlib", "zstd"} {
		if !lack[name] {
			l.Features.MultifdMethods = append(l.Features.MultifdMethods, name)
		}
	}
	return l
}

// able means that options are accepted: no kind is as large.
const able hypervisor.Kind = 255

// options are what may be asked for, what each needs, and what comes of it where
// that is there, and where it is not.
var options = []struct {
	name    string
	options hypervisor.TransferOptions
	kind    hypervisor.Kind
	needs   []string // any one of which is enough to refuse it
}{
	{"nothing", hypervisor.TransferOptions{}, able, nil},
	{"limits", hypervisor.TransferOptions{Bandwidth: 1, Downtime: time.Second}, able, nil},
	{"a negative bandwidth", hypervisor.TransferOptions{Bandwidth: -1}, hypervisor.Invalid, nil},
	{"a negative downtime", hypervisor.TransferOptions{Downtime: -1}, hypervisor.Invalid, nil},
	{"a negative number of channels", hypervisor.TransferOptions{Channels: -1},
		hypervisor.Invalid, nil},
	{"one channel", hypervisor.TransferOptions{Channels: 1}, able, nil},
	{"two channels", hypervisor.TransferOptions{Channels: 2}, able, []string{"multifd"}},
	{"255 channels", hypervisor.TransferOptions{Channels: 255}, able, []string{"multifd"}},
	{"256 channels", hypervisor.TransferOptions{Channels: 256}, hypervisor.Invalid, nil},
	{"post-copy, which takes one channel", hypervisor.TransferOptions{PostCopy: true, Channels: 4},
		able, []string{"postcopy-ram", "migrate-start-postcopy"}},
	{"compression", hypervisor.TransferOptions{Compression: true}, able, []string{"multifd"}},
	{"compression with a method", hypervisor.TransferOptions{Compression: true, Method: "zstd"},
		able, []string{"multifd", "zstd"}},
	{"compression with the other method",
		hypervisor.TransferOptions{Compression: true, Method: "zlib"}, able, []string{"zlib"}},
	{"compression with an unknown method",
		hypervisor.TransferOptions{Compression: true, Method: "lzma"}, hypervisor.Invalid, nil},
	{"a method without compression", hypervisor.TransferOptions{Method: "zstd"},
		hypervisor.Invalid, nil},
	{"no compression with a method called none", hypervisor.TransferOptions{Method: "none"},
		hypervisor.Invalid, nil},
	{"compression in post-copy", hypervisor.TransferOptions{Compression: true, PostCopy: true},
		hypervisor.Unsupported, nil},
	{"auto-converge", hypervisor.TransferOptions{AutoConverge: true}, able,
		[]string{"auto-converge"}},
	{"xbzrle", hypervisor.TransferOptions{XBZRLE: true}, able, []string{"xbzrle"}},
	{"a hold before the switch-over", hypervisor.TransferOptions{HoldSwitchOver: true}, able,
		[]string{"pause-before-switchover", "migrate-continue"}},
	{"a guest that stays paused", hypervisor.TransferOptions{StartPaused: true}, able, nil},
}

func TestCheckOptions(t *testing.T) {
	for _, row := range options {
		t.Run(row.name, func(t *testing.T) {
			refused(t, launcher(), row.options, row.kind)
			for _, lack := range row.needs {
				refused(t, launcher(lack), row.options, hypervisor.Unsupported)
			}
		})
	}
	t.Run("compression takes the method that there is", func(t *testing.T) {
		o := hypervisor.TransferOptions{Compression: true}
		refused(t, launcher("zstd"), o, able)
		refused(t, launcher("zlib"), o, able)
		refused(t, launcher("zlib", "zstd"), o, hypervisor.Unsupported)
	})
	t.Run("a QEMU that is given its connection has only one", func(t *testing.T) {
		l := launcher()
		l.Passed = true
		refused(t, l, hypervisor.TransferOptions{Channels: 2}, hypervisor.Unsupported)
		refused(t, l, hypervisor.TransferOptions{Compression: true}, hypervisor.Unsupported)
		refused(t, l, hypervisor.TransferOptions{PostCopy: true, Channels: 2}, able)
	})
}

func refused(t *testing.T, l *qemu.Launcher, o hypervisor.TransferOptions, want hypervisor.Kind) {
	t.Helper()
	err := l.CheckOptions(o)
	if want == able && err == nil {
		return
	}
	if got, refused := errors.AsType[*hypervisor.Error](err); !refused || got.Kind != want {
		t.Errorf("%+v: got %v, want %v", o, err, want)
	}
}

// TestEveryLackMatters: what is accepted needs no ability that the host lacks.
func TestEveryLackMatters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lacks := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"auto-converge", "postcopy-ram",
			"multifd", "xbzrle", "pause-before-switchover", "zlib", "zstd", "migrate-continue"}),
			rapid.ID).Draw(t, "lacks")
		l := launcher(lacks...)
		l.Passed = rapid.Bool().Draw(t, "passed")
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		o := hypervisor.TransferOptions{
			Bandwidth: hypervisor.Bandwidth(rapid.Int64().Draw(t, "bandwidth")),
			Downtime:  time.Duration(rapid.Int64().Draw(t, "downtime")),
			PostCopy:  flag("post-copy"), AutoConverge: flag("converge"),
			Channels:    rapid.Int().Draw(t, "channels"),
			Compression: flag("compression"), XBZRLE: flag("xbzrle"), HoldSwitchOver: flag("hold"),
			Method: rapid.SampledFrom([]string{"", "zlib", "zstd", "x"}).Draw(t, "method")}
		if l.CheckOptions(o) != nil {
			return
		}
		can := l.Abilities()
		for ability, wanted := range map[hypervisor.Abilities]bool{
			hypervisor.CanAutoConverge: o.AutoConverge, hypervisor.CanPostCopy: o.PostCopy,
			hypervisor.CanXBZRLE: o.XBZRLE, hypervisor.CanHoldSwitchOver: o.HoldSwitchOver,
			hypervisor.CanCompress:    o.Compression,
			hypervisor.CanUseChannels: o.Compression || o.Channels > 1 && !o.PostCopy} {
			if wanted && !can.Has(ability) || o.Bandwidth < 0 || o.Downtime < 0 || o.Channels < 0 {
				t.Fatalf("%+v was accepted by a host that can %q", o, can.Names())
			}
		}
	})
}

func TestNeed(t *testing.T) {
	l := launcher("multifd")
	if err := l.Need(hypervisor.CanMoveCold | hypervisor.CanResize); err != nil {
		t.Errorf("every host moves files: %v", err)
	}
	if err := l.Need(hypervisor.CanTakeBack); err != nil {
		t.Errorf("every host keeps a source: %v", err)
	}
	if err := l.Need(hypervisor.CanEncrypt); !errors.Is(err, hypervisor.Unsupported) {
		t.Errorf("without TLS: got %v", err)
	}
	l.TLS = &qemu.TLS{}
	if err := l.Need(hypervisor.CanEncrypt); err != nil {
		t.Errorf("with TLS: got %v", err)
	}
	lacks := hypervisor.CanUseChannels | hypervisor.CanCompress
	err := l.Need(lacks | hypervisor.CanXBZRLE)
	want := "QEMU 0.0.0, tcg on this host cannot do it: " + strings.Join(lacks.Names(), ", ")
	if !errors.Is(err, hypervisor.Unsupported) || qemu.Text(err) != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestLimits puts limits into QEMU's terms.
func TestLimits(t *testing.T) {
	for limit, want := range map[time.Duration]int64{0: 300, time.Nanosecond: 1,
		time.Millisecond: 1, 1999 * time.Microsecond: 1, 2 * time.Second: 2000} {
		if got := *qemu.Downtime(limit); got != want {
			t.Errorf("%v is %d ms, want %d", limit, got, want)
		}
	}
	if got := *qemu.Bandwidth(0); got != 0 {
		t.Errorf("no limit is %d", got)
	}
	if got := *qemu.Bandwidth(hypervisor.Gbit); got != 125_000_000 {
		t.Errorf("a gigabit is %d bytes per second", got)
	}
}
