package cache

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// What Badger cannot open although it is whole is not damaged where it is the system that
// falls short. Badger says so in words alone.
func TestWhyBadgerDoesNotOpen(t *testing.T) {
	for name, tc := range map[string]struct {
		says    string
		kind    error
		damaged bool
	}{
		"no handles":           {syscall.EMFILE.Error() + "\nunable to open: 7.sst", ErrFiles, false},
		"none in the system":   {syscall.ENFILE.Error(), ErrFull, false},
		"no memory to map":     {syscall.ENOMEM.Error() + "\nwhile mmapping 7.sst", ErrDisk, false},
		"a drive that fails":   {syscall.EIO.Error(), ErrDisk, false},
		"in use":               {"Cannot acquire directory lock on \"d\"", ErrInUse, false},
		"a level out of order": {"Level validation err: Inter level", ErrDisk, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := badgerError(fmt.Errorf("Opening table err: %s", tc.says))
			if !errors.Is(err, tc.kind) || ofDamage(err) != tc.damaged {
				t.Errorf("%v, damaged %t, want %v", err, ofDamage(err), tc.kind)
			}
		})
	}
}
