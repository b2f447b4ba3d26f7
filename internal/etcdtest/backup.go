package etcdtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	if err := errors.Join(os.Rename(dir, dir+".old"), c.renamed(dir+".old", dir),
		os.RemoveAll(dir+".old")); err != nil {
		c.t.Fatal(err)
	}
}

// renamed copies a log, with another cluster id.
func (c *Cluster) renamed(from, to string) error {
	out, err := exec.Command(c.program, "rename", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("rename the log %s: %w: %s", from, err, out)
	}
	return nil
}

// dead ends the test when a member lives.
func (c *Cluster) dead(i int) {
	c.t.Helper()
	if c.members[i].cmd != nil {
		c.t.Fatalf("etcd %s lives: kill it first", c.members[i].about.Name)
	}
}
