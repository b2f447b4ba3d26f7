//go:build linux

package backendtest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/godwit-vm/godwit/internal/qemu"
	"github.com/godwit-vm/godwit/internal/testutil"
)

// watchQEMU watches a QEMU through a monitor of its own, until it ends: a test that wants to strike
// at a switch-over is told when the guest stops.
func (w *checker) watchQEMU(q *qemuPath) {
	client := w.dialMonitor(q)
	if client == nil {
		return
	}
	defer client.Close()
	w.mu.Lock()
	q.client = client
	w.mu.Unlock()
	for events := client.Subscribe(); ; {
		e, err := events.Next(w.ctx)
		if err != nil {
			return // no reader is so slow that an event is lost: it has ended
		}
		if e.Name != "STOP" {
			continue
		}
		select {
		case w.stops <- q:
		default: // it is not waited for
		}
	}
}

// dialMonitor dials the second monitor of a QEMU; nil says that it has ended.
func (w *checker) dialMonitor(q *qemuPath) qemu.Client {
	path := filepath.Join(w.monitors, strconv.Itoa(q.pid))
	for w.ctx.Err() == nil && len(arguments(q.pid)) > 0 {
		ctx, cancel := context.WithTimeout(w.ctx, testutil.Limit(testutil.DefaultLimit))
		client, err := qemu.Dial(ctx, qemu.Config{Path: path, Timeout: 30 * time.Second})
		cancel()
		if err == nil {
			return client
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// inspect stops the guest of a QEMU, reads all of its memory, and lets it go on. Its
// agent must not look meanwhile.
func (w *checker) inspect(ctx context.Context, q *qemuPath) (err error) {
	const size = int64(preyMemory)
	w.mu.Lock()
	client := q.client
	w.mu.Unlock()
	if client == nil {
		return errors.New("its second monitor does not answer")
	}
	path := filepath.Join(w.dir, fmt.Sprintf("dump.%d", q.pid))
	defer os.Remove(path)
	if err := client.Execute(ctx, "stop", nil, nil); err != nil {
		return err
	}
	err = client.Execute(ctx, "pmemsave",
		map[string]any{"val": 0, "size": size, "filename": path}, nil)
	if err = cmp.Or(err, client.Execute(ctx, "cont", nil, nil)); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return w.load.Verify(f, size)
}
