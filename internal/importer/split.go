package importer

import (
	"fmt"

	"github.com/godwit-vm/godwit/internal/yamldoc"
)

// MaxPiece is how many bytes a piece may have.
const MaxPiece = yamldoc.MaxSize

// A Piece is the text of one object.
type Piece struct {
	Line int    // of the input, where the text begins; from 1
	Text []byte // only valid until the next piece
	JSON bool   // else YAML
	Rest bool   // what is left of a list whose items were pieces of their own
	End  int    // of YAML that is Rest: the line in which the list ends
}

// An Error is input that cannot be taken to pieces.
type Error struct {
	Line    int
	Message string
}

// Error says what is wrong in which line.
func (e Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }
