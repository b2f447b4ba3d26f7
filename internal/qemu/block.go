package qemu

import (
	"context"

	"github.com/godwit-vm/godwit/hypervisor"
)

// BlockdevAdd makes a block node from its options.
func (q QEMU) BlockdevAdd(ctx context.Context, options map[string]any) error {
	return q.do(ctx, "blockdev-add", options)
}

// BlockdevDel removes a block node.
func (q QEMU) BlockdevDel(ctx context.Context, node string) error {
	return q.do(ctx, "blockdev-del", args{"node-name": node})
}

// DeviceAdd plugs a device in.
func (q QEMU) DeviceAdd(ctx context.Context, options map[string]any) error {
	return q.do(ctx, "device_add", options)
}

// DeviceDel asks the guest to let a device go.
func (q QEMU) DeviceDel(ctx context.Context, id string) error {
	return q.do(ctx, "device_del", args{"id": id})
}

// SnapshotInternal keeps the contents of a device inside its image.
func (q QEMU) SnapshotInternal(ctx context.Context, device, name string) error {
	return q.do(ctx, "blockdev-snapshot-internal-sync", args{"device": device, "name": name})
}

// SnapshotDeleteInternal removes a snapshot from the image of a device.
func (q QEMU) SnapshotDeleteInternal(ctx context.Context, device, name string) error {
	return q.do(ctx, "blockdev-snapshot-delete-internal-sync", args{"device": device, "name": name})
}

// NBDStart listens for those who read and write exported nodes. Path is a unix
// socket, otherwise host and port are an address; creds may name credentials.
func (q QEMU) NBDStart(ctx context.Context, at Socket, creds string) error {
	addr := args{"type": "unix", "data": args{"path": at.Path}}
	if at.Type == "inet" {
		addr = args{"type": "inet", "data": args{"host": at.Host, "port": at.Port}}
	}
	a := args{"addr": addr}
	if creds != "" {
		a["tls-creds"] = creds
	}
	return q.do(ctx, "nbd-server-start", a)
}

// NBDExport exports a node under a name, for writing.
func (q QEMU) NBDExport(ctx context.Context, node, name string) error {
	return q.do(ctx, "block-export-add", args{"type": "nbd", "id": "export-" + name,
		"node-name": node, "name": name, "writable": true})
}

// NBDStop ends all exports.
func (q QEMU) NBDStop(ctx context.Context) error { return q.do(ctx, "nbd-server-stop", nil) }

// BlockdevMirror copies a node to another, and what is written meanwhile, until
// the job is cancelled, so many bytes per second at most; 0 is no limit. It stays to be seen
// when it has ended.
func (q QEMU) BlockdevMirror(ctx context.Context, job, device, target string, speed int64) error {
	return q.do(ctx, "blockdev-mirror", args{"job-id": job, "device": device, "target": target,
		"sync": "full", "auto-dismiss": false, "speed": speed})
}

// BlockJobSetSpeed limits a mirror to so many bytes per second; 0 is no limit.
func (q QEMU) BlockJobSetSpeed(ctx context.Context, job string, speed int64) error {
	return q.do(ctx, "block-job-set-speed", args{"device": job, "speed": speed})
}

// blockdevCopy copies a node to another until [QEMU.blockJobComplete]. What the guest writes meanwhile
// it writes to both before it is told that it has: so the copy becomes complete however much it writes,
// and from the moment when the job is ready both hold the same. It stays to be seen when it has ended.
// Source: QEMU 7.2 qapi/block-core.json (MirrorCopyMode).
func (q QEMU) blockdevCopy(ctx context.Context, job, device, target string) error {
	return q.do(ctx, "blockdev-mirror", args{"job-id": job, "device": device, "target": target,
		"sync": "full", "auto-dismiss": false, "copy-mode": "write-blocking"})
}

// blockJobComplete lets the users of a node that is copied go over to the copy.
func (q QEMU) blockJobComplete(ctx context.Context, job string) error {
	return q.do(ctx, "block-job-complete", args{"device": job})
}

// BlockJobCancel ends a mirror. Of one that is ready, the copy is then complete,
// unless by force.
func (q QEMU) BlockJobCancel(ctx context.Context, job string, force bool) error {
	return q.do(ctx, "block-job-cancel", args{"device": job, "force": force})
}

// A JobStatus is how far a job has come.
// Source: QEMU 7.2 qapi/job.json (JobStatus).
type JobStatus string

// The statuses of jobs that mean something to us.
const (
	JobReady     JobStatus = "ready"
	JobStandby   JobStatus = "standby" // ready, and paused for a moment
	JobAborting  JobStatus = "aborting"
	JobConcluded JobStatus = "concluded"
	JobNull      JobStatus = "null" // we know of it, and QEMU does not
)

// A Job is a mirror. Progress is in bytes.
type Job struct {
	ID      string
	Type    string
	Status  JobStatus
	Current int64 `json:"current-progress"`
	Total   int64 `json:"total-progress"`
	Error   string
}

// QueryJobs lists the mirrors that were not dismissed.
func (q QEMU) QueryJobs(ctx context.Context) ([]Job, error) {
	var reply []Job
	err := q.Execute(ctx, "query-jobs", nil, &reply)
	return reply, err
}

// JobDismiss removes a job that has ended.
func (q QEMU) JobDismiss(ctx context.Context, id string) error {
	return q.do(ctx, "job-dismiss", args{"id": id})
}

// A NamedNode is a block node that has a name.
type NamedNode struct {
	Name  string `json:"node-name"`
	Image struct {
		Snapshots []struct{ Name string }
		Size      hypervisor.Bytes `json:"virtual-size"`
	}
}

// QueryNamedNodes lists the block nodes.
func (q QEMU) QueryNamedNodes(ctx context.Context) ([]NamedNode, error) {
	var reply []NamedNode
	err := q.Execute(ctx, "query-named-block-nodes", args{"flat": true}, &reply)
	return reply, err
}

// BlockResize grows a node to a size in bytes.
func (q QEMU) BlockResize(ctx context.Context, node string, size int64) error {
	return q.do(ctx, "block_resize", args{"node-name": node, "size": size})
}
