//go:build linux

package qmp

import (
	"context"

	"github.com/godwit-vm/godwit/internal/qemu"
)

// Features are what a QEMU program can do on this machine. See [Config.Features].
type Features = qemu.Features

// Probe asks the QEMU program at path what it can do here. The context bounds how long
// that may take. The error is fs.ErrNotExist if there is no such program.
func Probe(ctx context.Context, path string) (Features, error) { return qemu.Probe(ctx, path) }

// MonitorClient sends commands to the monitor of one QEMU. See [Host.Monitor].
type MonitorClient = qemu.Client
