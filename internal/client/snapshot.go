package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/godwit-vm/godwit/hypervisor"
	"github.com/godwit-vm/godwit/store"
)

// AskSnapshot asks once for a snapshot of a disk to be created, deleted or reverted to: what is one of
// [store.CreateSnapshot] and so on. It answers the id of the request. A VM that is being migrated is
// asked when the migration has ended.
func (d *Client) AskSnapshot(ctx context.Context, id hypervisor.VMID, what, disk, name string) (
	string, error) {
	asked := store.SnapshotRequest{ID: rand.Text()[:8], What: what, Disk: disk, Name: name, By: d.By,
		At: d.Now().UTC().Round(0)}
	request := asked.Words() + " of vm " + string(id)
	_, err := d.changeVM(ctx, id, asked.Words(), func(v *store.VM) error {
		at := slices.IndexFunc(v.Disks(), func(o hypervisor.Disk) bool { return o.Name == disk })
		made := slices.ContainsFunc(v.Snapshots, func(s store.Snapshot) bool {
			return s.Disk == disk && s.Name == name
		})
		switch {
		case at < 0:
			return unknownDisk(disk, v.Disks())
		case !IsName(name) || strings.Trim(name, "0123456789") == "":
			return refuse(request, "%.100q is not a snapshot's name: write a-z A-Z 0-9 . _ -, and not "+
				"digits alone", name)
		case v.Disks()[at].Format != "qcow2":
			return refuse(request, "its image is not declared as qcow2, and no other format keeps snapshots")
		case what == store.CreateSnapshot && made:
			return refuse(request, "there is one of this name: delete it first, or choose another name")
		case what == store.RevertSnapshot && (!v.Stopped || !v.Ended):
			return refuse(request, "it is not stopped: godwit vm stop it first, and wait until it has stopped")
		}
		v.AskSnapshot(asked)
		return nil
	})
	return asked.ID, err
}

// Snapshot is a snapshot, or a request about one that has not been done.
type Snapshot struct {
	Disk    string     `json:"disk"`
	Name    string     `json:"name"`
	State   string     `json:"state"` // "kept", "to be created", "create refused"
	By      string     `json:"by,omitempty"`
	At      *time.Time `json:"at,omitempty"` // it was made, or asked for
	Request string     `json:"request,omitempty"`
	Why     string     `json:"why,omitempty"`
}

// Snapshots lists the snapshots that godwit has made of a VM's disks, and the requests about some that
// are not done.
func (d *Client) Snapshots(ctx context.Context, id hypervisor.VMID) ([]Snapshot, error) {
	r, err := d.Store.Get(ctx, vmKey(id))
	if err != nil {
		return nil, err
	}
	v, is := r.(*store.VM)
	if !is {
		return nil, d.Missing(ctx, vmKey(id))
	}
	all := []Snapshot{}
	for _, s := range v.Snapshots {
		all = append(all, Snapshot{Disk: s.Disk, Name: s.Name, State: "kept", By: s.By, At: moment(s.Made)})
	}
	for _, r := range v.SnapshotRequests {
		state := "to be " + map[string]string{store.CreateSnapshot: "created", store.DeleteSnapshot: "deleted",
			store.RevertSnapshot: "reverted to"}[r.What]
		if !r.Ended.IsZero() {
			state = r.What + " refused"
		}
		if r.Ended.IsZero() || r.Why != "" {
			all = append(all, Snapshot{Disk: r.Disk, Name: r.Name, State: state, By: r.By, At: moment(r.At),
				Request: r.ID, Why: r.Why})
		}
	}
	return all, nil
}

// SnapshotTable prints a table of snapshots.
func SnapshotTable(out io.Writer, all []Snapshot) error {
	t := table(out)
	fmt.Fprintln(t, "DISK\tSNAPSHOT\tSTATE\tBY\tAT\tWHY")
	for _, s := range all {
		at := ""
		if s.At != nil {
			at = s.At.Format(time.RFC3339)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Disk, s.Name, s.State, Plain(s.By), at, Plain(s.Why))
	}
	return t.Flush()
}
