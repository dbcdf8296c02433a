package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/config"
)

type backupCommand struct {
	File string `arg:"" help:"New file."`
}

func (backupCommand) Help() string {
	return `Copies the records of MAILGATE_DATA_DIR as they are at one moment, and the node's own secret, to a new file, and checks it. The node may run meanwhile. The file contains addresses and the secret. Records in Redis are not copied: back up Redis.`
}

func (b backupCommand) Run(c *config.Config, to streams) error {
	options, err := diskOptions(c)
	if err != nil {
		return err
	}
	summary, err := cache.Backup(options, b.File, secretFile)
	if err != nil {
		return diskError(c, err)
	}
	fmt.Fprintf(to.out, "%d records are in %s; the newest was written at %s\n", summary.Records, b.File, newest(summary))
	return nil
}

type restoreCommand struct {
	File string `arg:"" help:"Backup."`
}

func (restoreCommand) Help() string {
	return `Makes MAILGATE_DATA_DIR, which must not have a history yet, from a file that mailgate backup made. Start the node afterwards. Sends that are newer than the backup are forgotten.`
}

func (r restoreCommand) Run(c *config.Config, to streams) error {
	options, err := diskOptions(c)
	if err != nil {
		return err
	}
	summary, err := cache.Restore(options, r.File)
	if err != nil {
		return diskError(c, err)
	}
	fmt.Fprintf(to.out, "%d records are restored to %s; sends after %s are forgotten\n", summary.Records, options.Dir, newest(summary))
	return nil
}

func newest(s cache.Summary) string { return time.UnixMilli(s.Newest).UTC().Format(time.RFC3339) }

// diskOptions returns the data directory of the settings.
func diskOptions(c *config.Config) (cache.Options, error) {
	switch {
	case c.RedisURL != "":
		return cache.Options{}, c.Complain("redis-url", "the records are in Redis: back up Redis")
	case c.DataDir == config.Memory:
		return cache.Options{}, c.Complain("data-dir", "records in memory cannot be backed up")
	}
	return cache.Options{Dir: absolute(c.DataDir), Format: recordFormat, Now: now}, nil
}

// diskError returns a wrong data directory as a wrong setting.
func diskError(c *config.Config, err error) error {
	if errors.Is(err, cache.ErrHistory) || errors.Is(err, cache.ErrInUse) {
		return c.Complain("data-dir", err.Error())
	}
	return err
}
