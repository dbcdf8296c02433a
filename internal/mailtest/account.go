package mailtest

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/mailgate/mailgate/internal/servertest"
)

// account is the user that a server runs as.
type account struct {
	uid, gid int
	switched bool // it is not the test's own
}

// nobody is the number of the user without rights on all usual systems.
const nobody = 65534

// ownAccount is the test's own user, or nobody where that is root: Exim
// delivers no mail as root.
func ownAccount() account {
	if os.Getuid() == 0 {
		return account{uid: nobody, gid: nobody, switched: true}
	}
	return account{uid: os.Getuid(), gid: os.Getgid()}
}

// attributes make a server the head of a group of its own, with the rights of
// the account, that ends with the test's process.
func (a account) attributes() *syscall.SysProcAttr {
	attributes := servertest.DieWithParent()
	attributes.Setpgid = true
	if a.switched {
		attributes.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attributes
}

// own makes the account the owner of files in dir; "" is dir itself.
func (a account) own(dir string, names ...string) error {
	if !a.switched {
		return nil
	}
	for _, name := range names {
		if err := os.Chown(filepath.Join(dir, name), a.uid, a.gid); err != nil {
			return err
		}
	}
	return nil
}
