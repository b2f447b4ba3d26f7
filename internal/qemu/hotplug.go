package qemu

import "context"

// A MemoryDevice is a memory module that is plugged in.
// Source: QEMU 7.2 qapi/machine.json (MemoryDeviceInfo, PCDIMMDeviceInfo).
type MemoryDevice struct {
	Type string // "dimm"
	Data struct {
		ID   string
		Size int64
	}
}

// QueryMemoryDevices lists the memory modules that are plugged in, by address.
func (q QEMU) QueryMemoryDevices(ctx context.Context) ([]MemoryDevice, error) {
	var reply []MemoryDevice
	err := q.Execute(ctx, "query-memory-devices", nil, &reply)
	return reply, err
}

// A HotpluggableCPU is a place for a virtual CPU.
// Source: QEMU 7.2 qapi/machine.json (HotpluggableCPU, CpuInstanceProperties).
type HotpluggableCPU struct {
	Type  string         // the driver that device_add takes
	Props map[string]int // its place: "socket-id", "core-id", "thread-id" and others
	// Path is the CPU's in QEMU's tree of objects; "" is that the place is free.
	Path string `json:"qom-path"`
}

// queryHotpluggableCPUs lists the places for virtual CPUs, those that are taken included, in no
// order.
func (q QEMU) queryHotpluggableCPUs(ctx context.Context) ([]HotpluggableCPU, error) {
	var reply []HotpluggableCPU
	err := q.Execute(ctx, "query-hotpluggable-cpus", nil, &reply)
	return reply, err
}
