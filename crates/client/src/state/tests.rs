//! Scripts for the machine in virtual time.
