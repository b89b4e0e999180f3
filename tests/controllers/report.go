package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// report is what a reconcile did, in order.
type report struct {
	Actions []act `json:"actions"`
}

// act is one thing that a reconcile did, or was about to do when it could not.
type act struct {
	Action string `json:"action"`
	// Of the newest record afterwards, if there is one.
	Revision int    `json:"revision,omitempty"`
	Status   string `json:"status,omitempty"`
	// The objects that were put right, as `Kind/name`.
	Objects []string `json:"objects,omitempty"`
	Error   string   `json:"error,omitempty"`
}

func (r *report) add(done act, err error) {
	if err != nil {
		done.Error = err.Error()
	}
	r.Actions = append(r.Actions, done)
}

// print writes the report as one line.
func (r *report) print(w io.Writer) {
	if r.Actions == nil {
		r.Actions = []act{}
	}
	line, err := json.Marshal(r)
	if err != nil {
		// It holds nothing but strings and numbers.
		panic(err)
	}
	fmt.Fprintf(w, "%s\n", line)
}
