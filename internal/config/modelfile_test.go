package config_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/hypervisor/fake"
	"github.com/godwit-vm/godwit/internal/config"
	"github.com/godwit-vm/godwit/internal/yamldoc"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.Int64Range(0, int64(time.Hour))
		size := rapid.Int64Range(0, 1<<30)
		rate := rapid.Int64Range(0, 1e12)
		s := func() time.Duration { return time.Duration(span.Draw(t, "time")) }
		b := func() hypervisor.Bytes { return hypervisor.Bytes(size.Draw(t, "size")) }
		r := func() hypervisor.Bandwidth { return hypervisor.Bandwidth(rate.Draw(t, "rate")) }
		want := fake.Model{SetUp: s(), SwitchOver: s(), Acknowledge: s(), Window: s(),
			DeviceState: b(), PageOverhead: b(), ZeroPage: b(), ScanRate: r(), PerChannel: r(),
			AllChannels: r(), FirstTouch: r(), CompressRate: r(), DeltaCache: b(), DeltaPage: b(),
			DeltaRate: r(), BootTime: s(), ShutdownTime: s(),
			Compression: rapid.IntRange(1, 1000).Draw(t, "compression")}
		var text bytes.Buffer
		if err := config.WriteModel(&text, want); err != nil {
			t.Fatal(err)
		}
		got, _, err := config.ParseModel("m.yaml", text.Bytes())
		if err != nil || got != want {
			t.Fatalf("%s\n%v\ngot %+v\nwant %+v", text.Bytes(), err, got, want)
		}
	})
}

func TestWhatIsNotSaidIsTheBase(t *testing.T) {
	want := fake.QEMU()
	want.SetUp, want.Compression = 5*time.Millisecond, 23
	got, _, err := config.ParseModel("m.yaml", []byte("setUp: 5ms\ncompression: 23\n"))
	if err != nil || got != want {
		t.Errorf("%v, got %+v, want %+v", err, got, want)
	}
}

func TestProblemsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"setUp: 5":                    "m.yaml:1: setUp: ",
		"base: xen":                   "m.yaml:1: base: unknown model",
		"setUp: 1s\nscanRate: 5GiB\n": "m.yaml:2: scanRate: ",
		"compression: 2000":           "m.yaml:1: compression: needs parts per thousand",
		"window: 30h":                 "m.yaml:1: window: ",
		"deviceState: 5TiB":           "m.yaml:1: deviceState: ",
		"speed: 5":                    "m.yaml:1: speed: ",
		"":                            "m.yaml:1: it is empty",
	} {
		_, _, err := config.ParseModel("m.yaml", []byte(text))
		_, are := errors.AsType[yamldoc.Problems](err)
		if !are || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
