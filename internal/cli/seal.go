package cli

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-vm/godwit/internal/audit"
	"github.com/godwit-vm/godwit/internal/humanize"
)

const auditSealHelp = `Seal the lines of an audit log that have no seal, with an ed25519 key: godwit audit verify then
finds each line that was changed, removed, added or cut off since, also by a user who may write to the
log. The seals are added to a file. Keep key and seals where the writer of the log cannot write, and
seal often: what was changed before it was sealed is not found.

A log is sealed only when everything that was sealed before is still there. Several files are read as one
log, the oldest first. --new-key makes the key, and its public half beside it, KEY.pub.

Exit status: 0 sealed, 2 bad input, 3 not sealed: the log has been changed.`

const auditVerifyHelp = `Verify an audit log against its seals: report lines that were changed, removed or added since they
were sealed, and seals that were not made with the key, or are missing between others. Lines after the
last seal are counted. Several files are read as one log, the oldest first; --since says with which
number it may begin when rotation has removed older files.

Exit status: 0 it is as it was sealed, 2 bad input, 3 it is not.`

// sealFlags are the flags of the commands about seals.
type sealFlags struct {
	key, seals string
	since      uint64
}

func (f *sealFlags) add(c *cobra.Command, key string) {
	c.Flags().StringVar(&f.key, "key", "", key)
	c.Flags().StringVar(&f.seals, "seals", "", "`FILE` of the seals")
	c.Flags().Uint64Var(&f.since, "since", 0, "`NUMBER` of the first line that has to be there; default: the first one\n"+
		"that was sealed")
	for _, name := range []string{"key", "seals"} {
		_ = c.MarkFlagRequired(name)
	}
}

// open opens a log, and reads its seals: none are there before it was sealed first.
func (f *sealFlags) open(paths []string) (files []io.Reader, seals []audit.Seal, done func(), err error) {
	var opened []*os.File
	done = func() {
		for _, file := range opened {
			_ = file.Close()
		}
	}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			done()
			return nil, nil, nil, err
		}
		opened, files = append(opened, file), append(files, file)
	}
	text, err := os.ReadFile(f.seals)
	if err == nil {
		seals, err = audit.ReadSeals(bytes.NewReader(text))
		if err != nil {
			err = fmt.Errorf("%s: %w", f.seals, err)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		done()
		return nil, nil, nil, err
	}
	return files, seals, done, nil
}

func auditSealCommand() *cobra.Command {
	var f sealFlags
	var fresh bool
	c := &cobra.Command{Use: "seal FILE… --key KEY --seals SEALS", Short: "Seal an audit log with a key",
		Long: auditSealHelp, Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			key, err := f.signer(fresh)
			if err != nil {
				return err
			}
			files, before, done, err := f.open(args)
			if err != nil {
				return err
			}
			defer done()
			made, err := audit.MakeSeals(files, before, key, f.since, time.Now())
			if unsound, is := errors.AsType[*audit.UnsoundError](err); is {
				return errors.Join(tellFindings(c.OutOrStdout(), unsound.Findings), ErrNotDone)
			}
			if foreign, is := errors.AsType[*audit.ForeignError](err); is {
				return fmt.Errorf("%s: %w", args[foreign.File], err)
			}
			if err == nil && fresh {
				err = writeSealKey(f.key, key)
			}
			if err != nil {
				return err
			}
			return f.keep(c.OutOrStdout(), made)
		}}
	f.add(c, "`FILE` of the private key, in PEM")
	c.Flags().BoolVar(&fresh, "new-key", false, "make the key first; one that is there is refused")
	return c
}

// signer returns the key that signs. A new one is written when it has been used: a log that cannot be sealed leaves
// no key behind.
func (f *sealFlags) signer(fresh bool) (ed25519.PrivateKey, error) {
	if !fresh {
		return sealKey(f.key)
	}
	for _, path := range []string{f.key, f.key + ".pub"} {
		if _, err := os.Lstat(path); err == nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EEXIST}
		}
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return key, err
}

// keep adds seals to their file, and says which: all of them are on the disk by then. One that cannot
// be written leaves the file as it was, which could not be read again with half of a seal at its end.
func (f *sealFlags) keep(out io.Writer, made []audit.Seal) error {
	if len(made) == 0 {
		_, err := fmt.Fprintln(out, "every line is sealed")
		return err
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	for _, s := range made {
		if err := e.Encode(s); err != nil {
			return err
		}
	}
	if err := appendWhole(f.seals, text.Bytes()); err != nil {
		return fmt.Errorf("the lines %d to %d are not sealed: %s: %w", made[0].From, made[len(made)-1].To,
			f.seals, err)
	}
	for _, s := range made {
		if _, err := fmt.Fprintf(out, "sealed lines %d to %d\n", s.From, s.To); err != nil {
			return err
		}
	}
	return nil
}

// appendWhole adds text to the end of a file, all of it or nothing.
func appendWhole(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	before, err := file.Stat()
	if err == nil {
		if _, err = file.Write(text); err == nil {
			err = file.Sync()
		}
		if err != nil {
			err = errors.Join(err, file.Truncate(before.Size()))
		}
	}
	return errors.Join(err, file.Close())
}

func auditVerifyCommand() *cobra.Command {
	var f sealFlags
	var asJSON bool
	c := &cobra.Command{Use: "verify FILE… --key KEY.pub --seals SEALS",
		Short: "Verify an audit log against its seals", Long: auditVerifyHelp, Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			key, err := publicSealKey(f.key)
			if err != nil {
				return err
			}
			files, seals, done, err := f.open(args)
			if err != nil {
				return err
			}
			defer done()
			if len(seals) == 0 {
				return fmt.Errorf("%s has no seal: godwit audit seal makes them", f.seals)
			}
			found, err := audit.CheckSeals(files, seals, key, f.since)
			if err != nil {
				return err
			}
			return tellSealed(c.OutOrStdout(), found, asJSON)
		}}
	f.add(c, "`FILE` of the public key, in PEM")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON instead of text")
	return c
}

func tellSealed(out io.Writer, found audit.Sealed, asJSON bool) (err error) {
	if asJSON {
		err = json.NewEncoder(out).Encode(found)
	} else {
		_, err = fmt.Fprintf(out, "numbers %d to %d are sealed, %s after them\n", found.First, found.Last,
			humanize.Count(found.Unsealed, "line"))
		err = errors.Join(err, tellFindings(out, found.Findings))
	}
	if err == nil && len(found.Findings) > 0 {
		err = ErrNotDone
	}
	return err
}

func tellFindings(out io.Writer, findings []audit.Finding) (err error) {
	for _, wrong := range findings {
		_, failed := fmt.Fprintln(out, wrong.What)
		err = errors.Join(err, failed)
	}
	return err
}

// The kinds of PEM blocks. Source: RFC 7468, sections 10 and 13.
const (
	privatePEM = "PRIVATE KEY"
	publicPEM  = "PUBLIC KEY"
)

// writeSealKey writes a key and its public half. It overwrites nothing.
func writeSealKey(path string, private ed25519.PrivateKey) error {
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	open, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return err
	}
	if err := writeFresh(path, 0o600, privatePEM, secret); err != nil {
		return err
	}
	return writeFresh(path+".pub", 0o644, publicPEM, open)
}

func writeFresh(path string, mode fs.FileMode, kind string, der []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	return errors.Join(pem.Encode(f, &pem.Block{Type: kind, Bytes: der}), f.Sync(), f.Close())
}

func sealKey(path string) (ed25519.PrivateKey, error) {
	der, err := pemOf(path, privatePEM)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if private, is := key.(ed25519.PrivateKey); is && err == nil {
		return private, nil
	}
	return nil, fmt.Errorf("%s: it is no ed25519 key: make one with --new-key", path)
}

func publicSealKey(path string) (ed25519.PublicKey, error) {
	der, err := pemOf(path, publicPEM)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if public, is := key.(ed25519.PublicKey); is && err == nil {
		return public, nil
	}
	return nil, fmt.Errorf("%s: it is no public ed25519 key", path)
}

func pemOf(path, kind string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s: it has no PEM block %q", path, kind)
	}
	return block.Bytes, nil
}
