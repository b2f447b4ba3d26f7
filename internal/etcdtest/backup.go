package etcdtest

import (
	"errors"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// A Backup is the data directory of a member as it once was.
type Backup struct{ dir string }

// Backup copies the data of a member that was killed.
func (c *Cluster) Backup(i int) Backup {
	c.t.Helper()
	b := Backup{filepath.Join(c.t.TempDir(), "data")}
	c.dead(i)
	if err := os.CopyFS(b.dir, os.DirFS(c.members[i].about.Dir)); err != nil {
		c.t.Fatal(err)
	}
	return b
}

// Restore gives a member that was killed the data of a backup. All else that it had stored is gone.
func (c *Cluster) Restore(i int, b Backup) {
	c.t.Helper()
	c.dead(i)
	dir := c.members[i].about.Dir
	err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(b.dir)), private(dir))
	if err != nil {
		c.t.Fatal(err)
	}
}

// private closes directories to others, as etcd wants them: a copy has the modes of new files.
func private(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o700)
	})
}

// Rename gives the only member of a cluster, which was killed, another cluster id. Keys and revisions
// stay: so it is after a snapshot was restored with another token.
func (c *Cluster) Rename(i int) {
	c.t.Helper()
	c.dead(i)
	dir := filepath.Join(c.members[i].about.Dir, "member", "wal")
	if err := errors.Join(os.Rename(dir, dir+".old"), renamed(dir+".old", dir),
		os.RemoveAll(dir+".old")); err != nil {
		c.t.Fatal(err)
	}
}

// renamed copies a log, with another cluster id.
func renamed(from, to string) error {
	old, err := wal.Open(zap.NewNop(), from, &walpb.Snapshot{})
	if err != nil {
		return err
	}
	defer old.Close()
	text, state, entries, err := old.ReadAll()
	if err != nil {
		return err
	}
	var about etcdserverpb.Metadata
	if err := proto.Unmarshal(text, &about); err != nil {
		return err
	}
	about.ClusterID = proto.Uint64(about.GetClusterID() + 1)
	if text, err = proto.Marshal(&about); err != nil {
		return err
	}
	log, err := wal.Create(zap.NewNop(), to, text)
	if err != nil {
		return err
	}
	return errors.Join(log.Save(state, entries), log.Close())
}

// dead ends the test when a member lives.
func (c *Cluster) dead(i int) {
	c.t.Helper()
	if c.members[i].cmd != nil {
		c.t.Fatalf("etcd %s lives: kill it first", c.members[i].about.Name)
	}
}
