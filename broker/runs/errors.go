package runs

import (
	"errors"
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// ErrDamaged says that a history cannot be followed.
var (
	ErrDamaged = errors.New("the history is damaged")
	// ErrLater is ErrDamaged where a later version may have written what this one cannot read.
	ErrLater = fmt.Errorf("%w, or of a later version of Drover", ErrDamaged)
)

// damagedBy is what an error of decoding says of the history.
func damagedBy(err error) error {
	if errors.Is(err, schemas.ErrLater) {
		return ErrLater
	}
	return ErrDamaged
}

// ErrNoRun says that there is no such run, neither in the history nor in the memory of the master.
var ErrNoRun = errors.New("there is no such run")
