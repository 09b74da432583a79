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
  allow: 'Allow notifications',
  elsewhere: 'Be told when you look at something else?',
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
  showMore: count => `Show ${count} more`,
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
  nextCellReturns:
    'The GPU of this notebook is parked: what was on it waits in host memory. The next cell brings it back before it runs.',
  nextCellWaits: 'The GPU of this notebook is on its way back; the next cell waits for it.',

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
  noneFree: place => `None is free now: you would be ${ordinal(place)} in line.`,
  turnExpected: time => `Your turn is expected in about ${time}.`,
  turnUnknown: 'Nobody can say yet when one comes free.',

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
  noJobs: 'No batch jobs.',
  newJob: 'New batch job',
  runAsJob: 'Run Notebook as Batch Job',
  run: 'Run',
  aCommand: 'A command',
  commandHint:
    'Runs as you, on this server, as soon as its GPU is free. No shell reads it; for pipes and the like write `bash -c "…"`.',
  notebookHint:
    'A copy is run from top to bottom as soon as its GPU is free; its results appear beside the notebook, which you can go on editing.',
  folder: 'Folder',
  atMost: 'At most',
  unlimited: 'as long as it takes',
  preemptible: 'Others may stop it when they need its GPU; it then runs again from the start',
  submit: 'Submit',
  close: 'Close',
  actionsOfJob: number => `What to do with job ${number}`,
  stopQuestion: name => `Stop job ${name}?`,
  stopMeans:
    'It is running. It is told to end, and killed if it does not. What it has not saved by then is lost; this cannot be undone.',
  stop: 'Stop it',
  letItRun: 'Let it run',
  takeOutQuestion: name => `Take job ${name} out of the queue?`,
  takeOutMeans: 'It has not begun. It loses its place and will not run.',
  takeOut: 'Take it out',
  letItWait: 'Let it wait',
  output: 'Output',
  outputOf: name => `Output of ${name}`,
  errorOutput: 'Messages and errors',
  loadingLog: 'Fetching the output…',
  noOutput: 'It has written nothing yet.',
  logIsCut: 'This is the end of a long output; `gpubroker logs` shows all of it.',

  goesBackAt: (name, time) =>
    `The GPU of ${name} goes back at ${time}: it is idle and somebody waits for it.`,
  gotGpu: name => `${name} has its GPU now.`,
  titleMark: 'GPU goes back',
  titleArrived: 'Your GPU is there'
};
