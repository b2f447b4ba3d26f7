package inventory

import (
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/inventory/quantity"
)

// ParseBytes reads an amount of memory, such as 64GiB: see [quantity.Bytes].
func ParseBytes(text string) (hypervisor.Bytes, error) { return quantity.Bytes(text) }

// ParseBandwidth reads a speed, such as 10Gbit/s: see [quantity.Bandwidth].
func ParseBandwidth(text string) (hypervisor.Bandwidth, error) { return quantity.Bandwidth(text) }

// ParseDuration reads a duration, such as 150s: see [quantity.Duration].
func ParseDuration(text string) (time.Duration, error) { return quantity.Duration(text) }
