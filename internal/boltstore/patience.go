package boltstore

import (
	"context"
	"fmt"
	"io"
	"time"
)

// patience ends a call whose server is silent: one that is gone without a word keeps its connection for minutes.
// One of a socket ends nothing: it goes with its server.
type patience struct {
	limit  time.Duration // of a silence; 0: none
	parts  bool          // each part of the answer begins it anew
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// patience returns how long the server may be silent in a call, and the context that it ends. Connecting has limits of
// its own, and to wait is what a wait is for.
func (c *Client) patience(ctx context.Context, op string, size int) (context.Context, *patience) {
	p := &patience{limit: AnswerTimeout, parts: op == opChanges}
	switch {
	case !c.remote || op == opWait || op == opBackup:
		p.limit = 0
	case p.parts || size > small:
		p.limit = muchTimeout
	}
	ctx, p.cancel = context.WithCancelCause(ctx)
	if p.limit > 0 {
		why := fmt.Errorf("no answer within %v", p.limit)
		p.timer = time.AfterFunc(time.Hour, func() { p.cancel(why) }) // stopped below
		p.timer.Stop()
	}
	return ctx, p
}

// begin says that there is a connection, or a part of an answer.
func (p *patience) begin() {
	if p.timer != nil {
		p.timer.Reset(p.limit)
	}
}

// end ends the context.
func (p *patience) end() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.cancel(nil)
}

// over returns what reads an answer.
func (p *patience) over(r io.Reader) io.Reader {
	if !p.parts {
		return r
	}
	return patientReader{r, p}
}

// patientReader reads the parts of an answer.
type patientReader struct {
	io.Reader
	p *patience
}

// Read implements io.Reader.
func (r patientReader) Read(b []byte) (int, error) {
	r.p.begin()
	return r.Reader.Read(b)
}
