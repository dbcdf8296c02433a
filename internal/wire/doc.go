// Package wire writes what goes out as JSON: values, objects that are put together member by member,
// and the members of every problem.
package wire
