import { Words } from './words';

const SUFFIXES: Readonly<Record<string, string>> = { one: 'st', two: 'nd', few: 'rd', other: 'th' };
const ordinals = new Intl.PluralRules('en', { type: 'ordinal' });

function ordinal(place: number): string {
  return `${place}${SUFFIXES[ordinals.select(place)] ?? 'th'}`;
}

export const english: Words = {
  language: 'en',
  gpu: 'GPU',
  panel: 'GPUs',
  mine: 'My GPUs',
  request: 'Request',
  queue: 'Queue',
  pool: 'Pool',
  jobs: 'Jobs',
  of: 'of',
  load: 'Load',
  memory: 'Memory',
  loading: 'Asking the broker…',

  keep: 'Keep',
  release: 'Release',
  park: 'Park',
  unpark: 'Bring back',
  why: 'Why?',
  leave: 'Leave the queue',
  cancel: 'Cancel',
  openPanel: 'Show GPUs',
  requestGpu: 'Request a GPU',
  allowNotifications: 'Allow Notifications outside of JupyterLab',
  keepHint: left =>
    left === null ? 'Hold on to it' : `Hold on to it (possible ${left} more times)`,
  noKeepsLeft: 'It was kept as often as possible; work on it, or release it',
  releaseHint: 'Give it back now',
  parkHint: 'Give it back now and keep its contents in host memory',
  actionsOf: name => `What to do with the GPU of ${name}`,

  noBroker: 'no broker',
  noGpu: 'no GPU',
  notLent: 'GPU not managed',
  returnsIn: time => `returns in ${time}`,
  inQueue: (place, expected) => {
    const where = place === null ? 'in the queue' : `${ordinal(place)} in queue`;
    return expected === null ? where : `${where} · ~${expected}`;
  },
  arriving: 'arriving',
  leaving: 'going back',
  parked: 'parked',
  verdicts: {
    active: 'active',
    host_busy: 'busy on the CPU',
    waiting_user: 'waits for you',
    idle: 'idle',
    never_used: 'not used yet',
    serving: 'serving',
    suspect: 'behaves oddly',
    unknown: 'not visible'
  },
  unknownState: 'in an unknown state',

  nothingHeld: 'You hold no GPU.',
  giveBack: {
    empty: 'Goes back at once: nothing is on it yet.',
    parked: 'Goes back by parking its memory on the host.',
    checkpointed: 'Goes back by suspending its process on the GPU.',
    restarted: 'Goes back by saving and restarting the kernel.',
    kept: 'Cannot go back just now.'
  },
  keptFor: time => `kept for ${time} more`,
  endsIn: time => `yours for ${time} more`,
  command: 'Command',

  forNotebook: 'For',
  noNotebook: 'Open a notebook to request a GPU for it.',
  noKernel:
    'Its kernel is not known to the broker. Start or restart the kernel to request a GPU for it.',
  holdsAlready: 'This notebook has a GPU already, or waits for one.',
  what: 'What',
  count: 'Count',
  until: 'Until',
  untilReleased: 'I release it',
  leastMemory: 'At least',
  byMemory: 'By memory',
  anyGpu: 'Any GPU',
  freeOf: (free, all) => `${free} of ${all} free`,
  freeNow: (free, all) => `${free} of ${all} free: yours at once.`,
  noneFree: waiting =>
    waiting === 0
      ? 'None is free now; you would be first in line.'
      : `None is free now; ${waiting} wait already.`,
  lastExpected: time => `The last of them is expected to be served in about ${time}.`,

  emptyQueue: 'Nobody waits.',
  myPlace: (place, all) => `${ordinal(place)} of ${all}`,
  expected: time => `in about ${time}`,
  expectedUnknown: 'time unknown',
  waited: time => `waits ${time}`,
  othersWait: count => (count === 1 ? '1 other request waits.' : `${count} other requests wait.`),
  noGpus: 'There are no GPUs here.',
  simulated: 'These GPUs are simulated.',
  slotStates: {
    free: 'free',
    mine: 'yours',
    taken: 'taken',
    clearing: 'being checked',
    unusable: 'not usable'
  },
  gpuSummary: (free, all, used) => `${free} of ${all} free, memory used: ${used}`,
  noJobs: 'No batch jobs. Submit one with `gpubroker submit -- command`.',

  goesBackAt: (name, time) =>
    `The GPU of ${name} goes back at ${time}: it is idle and somebody waits for it.`,
  gotGpu: name => `${name} has its GPU now.`,
  titleMark: 'GPU goes back'
};
