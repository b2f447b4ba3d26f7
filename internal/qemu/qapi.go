package qemu

import "context"

// A Conn executes QMP commands. A *Monitor is one.
type Conn interface {
	// Execute runs a command and decodes what it returns into reply, which may
	// be nil.
	Execute(ctx context.Context, command string, arguments, reply any) error
}

// QEMU gives commands to one QEMU.
type QEMU struct{ Conn }

// args are the arguments of a command.
type args map[string]any

func (q QEMU) do(ctx context.Context, command string, a any) error {
	return q.Execute(ctx, command, a, nil)
}

// A RunState is what QEMU does with its guest.
// Source: QEMU 7.2 qapi/run-state.json (RunState).
type RunState string

// The run states that mean something to us. Of all others the guest stands.
const (
	Running       RunState = "running"
	Paused        RunState = "paused"
	PreLaunch     RunState = "prelaunch"
	InMigrate     RunState = "inmigrate"
	FinishMigrate RunState = "finish-migrate"
	PostMigrate   RunState = "postmigrate"
	Shutdown      RunState = "shutdown"
	Suspended     RunState = "suspended"
)

// Status returns what QEMU does.
func (q QEMU) Status(ctx context.Context) (RunState, error) {
	var reply struct{ Status RunState }
	err := q.Execute(ctx, "query-status", nil, &reply)
	return reply.Status, err
}

// Major returns which QEMU it is, which may be another than what is installed: 7 of "7.2.22".
func (q QEMU) Major(ctx context.Context) (int, error) {
	var reply struct{ QEMU struct{ Major int } }
	err := q.Execute(ctx, "query-version", nil, &reply)
	return reply.QEMU.Major, err
}

// Cont lets the guest run.
func (q QEMU) Cont(ctx context.Context) error { return q.do(ctx, "cont", nil) }

// Stop stops the guest's CPUs.
func (q QEMU) Stop(ctx context.Context) error { return q.do(ctx, "stop", nil) }

// SystemPowerdown asks the guest to shut down.
func (q QEMU) SystemPowerdown(ctx context.Context) error {
	return q.do(ctx, "system_powerdown", nil)
}

// SystemReset resets the machine.
func (q QEMU) SystemReset(ctx context.Context) error { return q.do(ctx, "system_reset", nil) }

// A CPU is a virtual CPU and the thread that runs it.
type CPU struct {
	Index  int `json:"cpu-index"`
	Thread int `json:"thread-id"`
}

// CPUs lists the virtual CPUs.
func (q QEMU) CPUs(ctx context.Context) ([]CPU, error) {
	var reply []CPU
	err := q.Execute(ctx, "query-cpus-fast", nil, &reply)
	return reply, err
}

// DirtyRate is what query-dirty-rate answers.
type DirtyRate struct {
	Status string // "unstarted", "measuring", "measured"
	Rate   int64  `json:"dirty-rate"` // MiB/s
}

// CalcDirtyRate begins to measure for a whole number of seconds, 1 to 60.
func (q QEMU) CalcDirtyRate(ctx context.Context, seconds int) error {
	return q.do(ctx, "calc-dirty-rate", args{"calc-time": seconds, "mode": "page-sampling",
		"sample-pages": 4096})
}

// QueryDirtyRate returns the last measurement.
func (q QEMU) QueryDirtyRate(ctx context.Context) (DirtyRate, error) {
	var reply DirtyRate
	err := q.Execute(ctx, "query-dirty-rate", nil, &reply)
	return reply, err
}

// ObjectAdd makes an object, such as credentials, from its properties.
func (q QEMU) ObjectAdd(ctx context.Context, properties map[string]any) error {
	return q.do(ctx, "object-add", properties)
}

// ObjectDel removes an object.
func (q QEMU) ObjectDel(ctx context.Context, id string) error {
	return q.do(ctx, "object-del", args{"id": id})
}
