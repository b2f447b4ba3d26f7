package qemu_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/godwit-vm/godwit/internal/qemu"
)

// A backend tells "surely no effect" from "unknown" without reading a text.
func ExampleMonitor_Execute() {
	ours, theirs := net.Pipe()
	go func() { // this QEMU dies when it is asked to migrate
		p := &peer{theirs, bufio.NewReader(theirs)}
		p.greet()
		p.hear()
		_ = p.Close()
	}()
	ctx := context.Background()
	m, err := qemu.New(ctx, ours, qemu.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	for range 2 {
		err := m.Execute(ctx, "migrate", map[string]string{"uri": "tcp:b:4444"}, nil)
		switch {
		case errors.Is(err, qemu.NotSent):
			fmt.Println("surely no effect")
		case errors.Is(err, qemu.Unknown):
			fmt.Println("it may have begun: observe")
		}
	}
	// Output:
	// it may have begun: observe
	// surely no effect
}
