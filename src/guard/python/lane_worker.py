# SPDX-License-Identifier: Apache-2.0
"""What the lane does in a worker (docs/lane.md). Every worker runs this text within lane.py, whose names it uses. Given by the library:

    connect(name, pid)              reaches that process; this worker's number, or 0
    parts_max()                     how many large parts may have a descriptor in a packet; what is more travels by value
    send(*descriptors)              to the trainer; the packet's number, or 0 if that is impossible now
    room(size)                      a bytearray with any contents
    optional(on)                    from now on this thread does not wait for shared memory, and is refused instead
    count(taken, by_value, others)  a batch is being sent, with so many bytes in the message and so many in segments of their own
"""
from copyreg import dispatch_table
from io import BytesIO
from pickle import PickleBuffer, Pickler

connect, parts_max, send, room, optional, count = map(globals().get, ("connect", "parts_max", "send", "room", "optional", "count"))

SEGMENT_BYTES = 512 << 10  # from here on a storage or an array has a segment of its own, which the library recycles
STEP_BYTES = 256 << 10  # of the size of a long message: those of about the same size share their segments
PIPE_BYTES = 3500  # of a message with tensors: with what the queue adds it is written as a whole (PIPE_BUF)
LONG_BYTES = 64 << 10  # of any other: what a pipe has room for
PART_BYTES = 12  # at most, of a part in the layout
OWN_WAYS = {"reducer_override", "persistent_id"}  # of a pickler
NUMBERS = set(map(id, (type(None), bool, int, float)))
IDLE_MAX = 16  # batches without anything for the lane, after which a worker has none
FINAL = "_shmguard_final"  # an exception that PyTorch's own way would raise, too




class Batch:
    """What a worker puts into the queue in the place of a batch. It is pickled by the queue's thread, as the batch would be."""

    def __init__(self, data, reduce):
        self.data = data
        self.reduce = reduce

    def __reduce__(self):
        try:
            return message_of, self.reduce(self.data)
        except Exception as error:  # PyTorch's own way, with PyTorch's own exception if there is one
            if hasattr(error, FINAL):
                raise
            count(False, 0, 0)
            return same, (self.data,)


def lane_open(queue, worker, torch):
    """From now on the batches of this worker take the lane."""
    reductions, pickler = modules[HOME], modules["multiprocessing.reduction"].ForkingPickler
    plain_tensor, plain_storage, plain_typed = reductions.reduce_tensor, reductions.reduce_storage, reductions.reduce_typed_storage
    Tensor, Storage, Typed, strided = torch.Tensor, torch.UntypedStorage, torch.storage.TypedStorage, torch.strided
    untyped = getattr(Tensor, "untyped_storage", None) or Tensor._storage
    has_names = getattr(Tensor, "has_names", None) or (lambda tensor: False)
    strategy = modules["torch.multiprocessing"].get_sharing_strategy
    new_segment, new_shared = Storage._new_using_fd_cpu, Storage._new_shared.__func__
    plain_put, plain_dumps, idle = queue.put, pickler.dumps.__func__, 0

    def segment(size):
        """New shared memory, its bytes and its descriptor; or None if there is no room for it at once. All of its pages exist, so that
        it can be issued again without a request for room."""
        optional(True)
        try:
            storage = new_segment(size)
        except RuntimeError:
            return None
        finally:
            optional(False)
        descriptor = storage._share_fd_cpu_()[0]
        if size >= SEGMENT_BYTES and os.fstat(descriptor).st_blocks * 512 < size:
            os.posix_fallocate(descriptor, 0, size)
        return storage, memory(storage.data_ptr(), size), descriptor

    def long_message(stream, parts, packed):
        """What message_of reads, with one segment for everything that has none of its own. None: there is no room for it, or the packet
        cannot be sent."""
        layout, descriptors = [], [None]
        for value, descriptor in parts:
            if descriptor is None:
                layout.append(len(value))
            else:
                layout.append((len(descriptors), len(value)))
                descriptors.append(descriptor)
        head = dumps(layout)
        end = len(head) + len(stream)
        whole = aligned(end) + packed
        room_of = segment(aligned(whole, STEP_BYTES) if whole >= SEGMENT_BYTES else whole)
        if not room_of:
            return None
        storage, there, descriptors[0] = room_of
        there[:len(head)] = head
        there[len(head):end] = stream
        for value, descriptor in parts:
            if descriptor is None:
                start = aligned(end)
                end = start + len(value)
                there[start:end] = value
        packet = send(*descriptors)
        return (len(stream), len(head), len(there), worker, packet) if packet else None

    def short_message(stream, parts):
        descriptors = [descriptor for _, descriptor in parts if descriptor is not None]
        packet = send(*descriptors) if descriptors else 0
        places = iter(range(len(descriptors)))
        layout = [bytes(value) if descriptor is None or not packet else (next(places), len(value)) for value, descriptor in parts]
        return bytes(stream), layout, 0, worker, packet

    def reduce(data):
        nonlocal idle
        reducers = pickler._extra_reducers
        if (reducers[Storage] is not plain_storage or reducers[Tensor] is not plain_tensor or reducers[Typed] is not plain_typed
                or not OWN_WAYS.isdisjoint(vars(pickler)) or pickler.dumps.__func__ is not plain_dumps):
            raise TypeError  # the program has its own ways
        by_name = strategy() == "file_system"
        numpy = modules.get("numpy")
        storages = {}  # by the address of what PyTorch itself keeps of a storage: Python's objects for it may be several
        parts = []  # in the order in which the pickle refers to them: bytes, and their descriptor or None
        segments = []  # of arrays: they live until they are sent
        places = set()  # what stands for the parts in the pickle
        by_value = packed = others = 0
        left = parts_max()

        def part(value, descriptor=None):
            nonlocal by_value, packed, others, left
            size = len(value)
            if descriptor is None:
                by_value += size
                packed += aligned(size)
            else:
                others += size
                left -= 1
            parts.append((value, descriptor))
            place = PickleBuffer(value)
            places.add(place)
            return place

        def reduce_tensor(tensor):
            if (type(tensor) is not Tensor or tensor.layout is not strided or tensor.requires_grad or tensor.is_nested
                    or tensor.is_quantized or not tensor.is_cpu or has_names(tensor)):
                return plain_tensor(tensor)
            storage = untyped(tensor)
            storage = storages.setdefault(storage._cdata, storage)
            return tensor_of, (storage, tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())

        def reduce_storage(storage):
            # Tensors of one storage are that in the trainer, too: it is sent once, and the pickler remembers it.
            nonlocal others
            first = storages.setdefault(storage._cdata, storage)
            if first is not storage:
                return same, (first,)
            size = storage.nbytes()
            if size == 0 or storage.device.type != "cpu":
                return plain_storage(storage)
            if (size < SEGMENT_BYTES or left == 0) and not storage.is_shared():
                return storage_of, (part(memory(storage.data_ptr(), size)),)
            if by_name or left == 0:
                others += size
                return plain_storage(storage)
            try:
                descriptor, size = storage._share_fd_cpu_()
            except RuntimeError as error:  # there is no memory, and PyTorch's way would only ask for it again
                setattr(error, FINAL, True)
                raise
            reductions.shared_cache[reductions.fd_id(descriptor)] = reductions.StorageWeakRef(storage)
            return storage_of, (part(memory(storage.data_ptr(), size), descriptor),)

        def reduce_array(array):
            size, flags = array.nbytes, array.flags
            room_of = None
            if size >= SEGMENT_BYTES and not array.dtype.hasobject and array.dtype.isnative and flags.forc and left > 0:
                room_of = segment(size)
            if not room_of:
                return array.__reduce_ex__(4)
            storage, there, descriptor = room_of
            there[:] = memory(array.__array_interface__["data"][0], size)
            segments.append(storage)
            return array_of, (part(there, descriptor), array.dtype, array.shape, "C" if flags.c_contiguous else "F")

        file = BytesIO()
        made = Pickler(file, 5, buffer_callback=lambda place: place not in places)
        made.dispatch_table = table = {**dispatch_table, **reducers, Storage: reduce_storage, Tensor: reduce_tensor}
        if numpy and numpy.ndarray not in table:
            table[numpy.ndarray] = reduce_array
        made.dump(data)
        stream = file.getbuffer()
        message = None
        if len(stream) + by_value + PART_BYTES * len(parts) > (PIPE_BYTES if parts or storages else LONG_BYTES):
            message = long_message(stream, parts, packed)
        message = message or short_message(stream, parts)
        if storages or segments:
            count(True, by_value, others)
        idle = 0 if storages or message[-1] else idle + 1
        if idle == IDLE_MAX:
            queue.put = plain_put
        return message

    def put(message, *args, **kwargs):
        if type(message) is tuple and len(message) == 2 and type(message[0]) is int:
            number, data = message
            kind = type(data)
            short = (kind is str or kind is bytes) and len(data) <= LONG_BYTES
            if not short and id(kind) not in NUMBERS:  # those are not worth the detour
                message = number, Batch(data, reduce)
        plain_put(message, *args, **kwargs)

    def new_small(cls, size, *, device="cpu"):
        # The collate function makes its tensors in shared memory. Not those that travel by value. As there, they cannot be resized.
        if cls is not Storage or not 0 < size < SEGMENT_BYTES or str(device) != "cpu":
            return new_shared(cls, size, device=device)
        return untyped(torch.frombuffer(room(size), dtype=torch.uint8))

    Storage._new_shared = classmethod(new_small)
    queue.put = put


def worker_start(process, queue):
    """In every worker of a DataLoader, before it does anything else."""
    queues, pickler = modules["multiprocessing.queues"], modules["multiprocessing.reduction"].ForkingPickler
    mark, pid, name = process._config.get(MARK, (0, 0, None))
    worker = connect(name, pid) if mark == FORMAT and pid == process._parent_pid else 0
    if not worker:
        decline(WHY_TRAINER)
    elif (type(queue) is not queues.Queue or queues._ForkingPickler is not pickler or pickler.__bases__ != (Pickler,)
            or pickler.dumps.__func__.__globals__ is not vars(modules["multiprocessing.reduction"])):
        decline(WHY_TORCH)
    else:
        lane_open(queue, worker, modules["torch"])
