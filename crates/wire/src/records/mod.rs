//! Record batches: see the files of this folder.
