// Package filelock keeps a second process out of a directory.
package filelock
