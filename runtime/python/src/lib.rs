//! Python bindings and the torch.distributed backend.
